// All of Tenon's public API.
#pragma once

#include "tenon/array.h"
#include "tenon/array_refs.h"
#include "tenon/bytes.h"
#include "tenon/compile.h"
#include "tenon/dtype.h"
#include "tenon/element.h"
#include "tenon/error.h"
#include "tenon/graph.h"
#include "tenon/index.h"
#include "tenon/npy.h"
#include "tenon/operand.h"
#include "tenon/ops.h"
#include "tenon/scalar.h"
#include "tenon/shape.h"
#include "tenon/summary.h"
#include "tenon/weights.h"
