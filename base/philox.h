/* Philox4x32-10, a counter-based random generator: the same key and counter give the same
 * numbers on any thread and any rank.
 * Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011). */
#ifndef TROUPE_BASE_PHILOX_H
#define TROUPE_BASE_PHILOX_H

#include <stdint.h>

/* Four 32-bit numbers for a 64-bit key and a 128-bit counter (low word first). */
void troupe_philox(uint64_t key, uint64_t counter_low, uint64_t counter_high, uint32_t out[4]);

/* Maps 32 bits onto [0, 1): the top 24 bits over 2^24 (float), 64 bits' top 53 over 2^53. */
float troupe_philox_uniform_float(uint32_t bits);
double troupe_philox_uniform_double(uint32_t high, uint32_t low);

/* Two standard normal numbers from two words (Box and Muller, 1958). */
void troupe_philox_normal(uint32_t a, uint32_t b, float out[2]);

#endif
