// Logarithm, exponential and complementary error function of `float`, for host and device: those
// of musl, step by step as Rust's crate libm has them, so that results can be compared bit for bit.
// With -DCUDA_MATH, CUDA's own functions instead.
//
// Origin: FreeBSD's e_expf.c, e_logf.c and s_erff.c.
// Conversion to float by Ian Lance Taylor, Cygnus Support, ian@cygnus.com.
//
// Copyright (C) 1993 by Sun Microsystems, Inc. All rights reserved.
// Developed at SunPro, a Sun Microsystems, Inc. business.
// Permission to use, copy, modify, and distribute this software is freely granted, provided that
// this notice is preserved.
#pragma once

#include "common.cuh"

namespace musl {

BOTH uint32_t bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

BOTH float from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// x times 2 to the power of n, for the n that `exp` needs.
BOTH float scale(float x, int n)
{
    if (n > 127) {
        x *= from_bits(0x7f000000); // 2^127
        n -= 127;
    } else if (n < -126) {
        x *= from_bits(0x0c800000); // 2^-102: the result is rounded once
        n += 102;
    }
    return x * from_bits(static_cast<uint32_t>(127 + n) << 23);
}

BOTH float exp(float x)
{
#ifdef CUDA_MATH
    return ::expf(x);
#endif
    const uint32_t word = bits(x) & 0x7fffffff;
    const int sign = static_cast<int>(bits(x) >> 31);
    if (word >= 0x42aeac50) { // |x| >= 87.33655, or not a number
        if (word > 0x7f800000) return x;
        if (word >= 0x42b17218 && sign == 0) return x * from_bits(0x7f000000);
        if (sign != 0 && word >= 0x42cff1b5) return 0.0f;
    }
    int k = 0;
    float hi = x, lo = 0.0f;
    if (word > 0x3eb17218) { // |x| > 0.5 ln 2
        const float half = sign != 0 ? -0.5f : 0.5f;
        k = word > 0x3f851592 ? static_cast<int>(1.4426950216e+00f * x + half) : 1 - sign - sign;
        hi = x - static_cast<float>(k) * 6.9314575195e-01f;
        lo = static_cast<float>(k) * 1.4286067653e-06f;
        x = hi - lo;
    } else if (word <= 0x39000000) { // |x| <= 2^-14
        return 1.0f + x;
    }
    const float xx = x * x;
    const float c = x - xx * (1.6666625440e-1f + xx * -2.7667332906e-3f);
    const float y = 1.0f + (x * c / (2.0f - c) - lo + hi);
    return k == 0 ? y : scale(y, k);
}

BOTH float log(float x)
{
#ifdef CUDA_MATH
    return ::logf(x);
#endif
    uint32_t word = bits(x);
    int k = 0;
    if (word < 0x00800000 || (word >> 31) != 0) {
        if (word << 1 == 0) return -1.0f / (x * x);
        if ((word >> 31) != 0) return from_bits(0x7fc00000); // not a number
        k -= 25;
        x *= from_bits(0x4c000000); // 2^25
        word = bits(x);
    } else if (word >= 0x7f800000) {
        return x;
    } else if (word == 0x3f800000) {
        return 0.0f;
    }
    word += 0x3f800000 - 0x3f3504f3;
    k += static_cast<int>(word >> 23) - 0x7f;
    x = from_bits((word & 0x007fffff) + 0x3f3504f3);
    const float f = x - 1.0f;
    const float s = f / (2.0f + f);
    const float z = s * s;
    const float w = z * z;
    const float t1 = w * (0.40000972152f + w * 0.24279078841f);
    const float t2 = z * (0.66666662693f + w * 0.28498786688f);
    const float r = t2 + t1;
    const float hfsq = 0.5f * f * f;
    const float dk = static_cast<float>(k);
    return s * (hfsq + r) + dk * 9.0580006145e-06f - hfsq + f + dk * 6.9313812256e-01f;
}

// c[0] + s (c[1] + s (c[2] + ...)).
template <int N>
BOTH float polynomial(float s, const float (&c)[N])
{
    float sum = c[N - 1];
    for (int i = N - 2; i >= 0; --i) sum = c[i] + s * sum;
    return sum;
}

// For |x| from 0.84375 to 28.
BOTH float erfc_of_large(uint32_t word, float x)
{
    x = fabsf(x);
    if (word < 0x3fa00000) { // |x| < 1.25
        const float p[] = {-2.3621185683e-03f, 4.1485610604e-01f, -3.7220788002e-01f, 3.1834661961e-01f,
                           -1.1089469492e-01f, 3.5478305072e-02f, -2.1663755178e-03f};
        const float q[] = {1.0f, 1.0642088205e-01f, 5.4039794207e-01f, 7.1828655899e-02f,
                           1.2617121637e-01f, 1.3637083583e-02f, 1.1984500103e-02f};
        const float s = x - 1.0f;
        return 1.0f - 8.4506291151e-01f - polynomial(s, p) / polynomial(s, q);
    }
    const float s = 1.0f / (x * x);
    float r, t;
    if (word < 0x4036db6d) { // |x| < 1 / 0.35
        const float ra[] = {-9.8649440333e-03f, -6.9385856390e-01f, -1.0558626175e+01f, -6.2375331879e+01f,
                            -1.6239666748e+02f, -1.8460508728e+02f, -8.1287437439e+01f, -9.8143291473e+00f};
        const float sa[] = {1.0f, 1.9651271820e+01f, 1.3765776062e+02f, 4.3456588745e+02f, 6.4538726807e+02f,
                            4.2900814819e+02f, 1.0863500214e+02f, 6.5702495575e+00f, -6.0424413532e-02f};
        r = polynomial(s, ra);
        t = polynomial(s, sa);
    } else {
        const float rb[] = {-9.8649431020e-03f, -7.9928326607e-01f, -1.7757955551e+01f, -1.6063638306e+02f,
                            -6.3756646729e+02f, -1.0250950928e+03f, -4.8351919556e+02f};
        const float sb[] = {1.0f, 3.0338060379e+01f, 3.2579251099e+02f, 1.5367296143e+03f,
                            3.1998581543e+03f, 2.5530502930e+03f, 4.7452853394e+02f, -2.2440952301e+01f};
        r = polynomial(s, rb);
        t = polynomial(s, sb);
    }
    const float z = from_bits(bits(x) & 0xffffe000);
    return exp(-z * z - 0.5625f) * exp((z - x) * (z + x) + r / t) / x;
}

BOTH float erfc(float x)
{
#ifdef CUDA_MATH
    return ::erfcf(x);
#endif
    const uint32_t word = bits(x) & 0x7fffffff;
    const bool negative = (bits(x) >> 31) != 0;
    if (word >= 0x7f800000) return (negative ? 2.0f : 0.0f) + 1.0f / x;
    if (word < 0x3f580000) { // |x| < 0.84375
        if (word < 0x23800000) return 1.0f - x;
        const float pp[] = {1.2837916613e-01f, -3.2504209876e-01f, -2.8481749818e-02f, -5.7702702470e-03f,
                            -2.3763017452e-05f};
        const float qq[] = {1.0f, 3.9791721106e-01f, 6.5022252500e-02f, 5.0813062117e-03f,
                            1.3249473704e-04f, -3.9602282413e-06f};
        const float z = x * x;
        const float y = polynomial(z, pp) / polynomial(z, qq);
        if (negative || word < 0x3e800000) return 1.0f - (x + x * y);
        return 0.5f - (x - 0.5f + x * y);
    }
    if (word < 0x41e00000) { // |x| < 28
        const float y = erfc_of_large(word, x);
        return negative ? 2.0f - y : y;
    }
    return negative ? 2.0f : 0.0f;
}

} // namespace musl
