// The operators of C++ in tenon/ops.h, by the functions that they stand for.
#include "tenon/ops.h"

namespace tenon {

Tensor operator+(const Operand& a, const Operand& b) { return add(a, b); }
Tensor operator-(const Operand& a, const Operand& b) { return sub(a, b); }
Tensor operator*(const Operand& a, const Operand& b) { return mul(a, b); }
Tensor operator/(const Operand& a, const Operand& b) { return div(a, b); }
Tensor operator%(const Operand& a, const Operand& b) { return mod(a, b); }
Tensor operator-(const Operand& a) { return neg(a); }
Tensor operator==(const Operand& a, const Operand& b) { return equal(a, b); }
Tensor operator!=(const Operand& a, const Operand& b) { return not_equal(a, b); }
Tensor operator<(const Operand& a, const Operand& b) { return less(a, b); }
Tensor operator<=(const Operand& a, const Operand& b) { return less_equal(a, b); }
Tensor operator>(const Operand& a, const Operand& b) { return greater(a, b); }
Tensor operator>=(const Operand& a, const Operand& b) { return greater_equal(a, b); }
Tensor operator&(const Operand& a, const Operand& b) { return bitwise_and(a, b); }
Tensor operator|(const Operand& a, const Operand& b) { return bitwise_or(a, b); }
Tensor operator^(const Operand& a, const Operand& b) { return bitwise_xor(a, b); }
Tensor operator~(const Operand& a) { return bitwise_not(a); }
Tensor operator<<(const Operand& a, const Operand& b) { return left_shift(a, b); }
Tensor operator>>(const Operand& a, const Operand& b) { return right_shift(a, b); }
Tensor operator&&(const Operand& a, const Operand& b) { return logical_and(a, b); }
Tensor operator||(const Operand& a, const Operand& b) { return logical_or(a, b); }
Tensor operator!(const Operand& a) { return logical_not(a); }

// The caller's line comes with b: a reference to a Tensor carries none.
Tensor& operator+=(Tensor& x, const Operand& b) { return x = add({x, b.location()}, b); }
Tensor& operator-=(Tensor& x, const Operand& b) { return x = sub({x, b.location()}, b); }
Tensor& operator*=(Tensor& x, const Operand& b) { return x = mul({x, b.location()}, b); }
Tensor& operator/=(Tensor& x, const Operand& b) { return x = div({x, b.location()}, b); }
Tensor& operator%=(Tensor& x, const Operand& b) { return x = mod({x, b.location()}, b); }
Tensor& operator&=(Tensor& x, const Operand& b) { return x = bitwise_and({x, b.location()}, b); }
Tensor& operator|=(Tensor& x, const Operand& b) { return x = bitwise_or({x, b.location()}, b); }
Tensor& operator^=(Tensor& x, const Operand& b) { return x = bitwise_xor({x, b.location()}, b); }
Tensor& operator<<=(Tensor& x, const Operand& b) { return x = left_shift({x, b.location()}, b); }
Tensor& operator>>=(Tensor& x, const Operand& b) { return x = right_shift({x, b.location()}, b); }

}  // namespace tenon
