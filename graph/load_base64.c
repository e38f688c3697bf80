/* Base64. Invariant: four characters make three bytes; what is left over at the end makes one
 * byte from two characters or two from three. */
#include <stdint.h>
#include <stdlib.h>

#include "base/memory.h"
#include "graph/load_base64.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int digit_value(char digit)
{
    if (digit >= 'A' && digit <= 'Z')
        return digit - 'A';
    if (digit >= 'a' && digit <= 'z')
        return digit - 'a' + 26;
    if (digit >= '0' && digit <= '9')
        return digit - '0' + 52;
    if (digit == '+' || digit == '-')
        return 62;
    return digit == '/' || digit == '_' ? 63 : -1;
}

enum troupe_status troupe_base64_decode(const char *text, size_t length, char **bytes_out,
                                        size_t *count_out)
{
    uint32_t bits = 0;
    size_t digits = 0, count = 0;
    char *bytes;

    for (int padding = 0; padding < 2 && length > 0 && text[length - 1] == '='; padding++)
        length--;
    if (length % 4 == 1)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "wants base64, got a text that is cut off");
    bytes = troupe_calloc(length / 4 * 3 + 4, 1);
    if (bytes == NULL)
        return troupe_status_fail(TROUPE_RESOURCE_EXHAUSTED, "no memory for %zu bytes", length);
    for (; digits < length; digits++) {
        int value = digit_value(text[digits]);

        if (value < 0) {
            free(bytes);
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                      "wants base64, got a character that is not of it at %zu",
                                      digits);
        }
        bits = bits << 6 | (uint32_t)value;
        if (digits % 4 == 0)
            continue; /* six bits are no byte yet; each further digit completes one */
        bytes[count++] = (char)(bits >> (6 - 2 * (digits % 4)) & 0xff);
    }
    *bytes_out = bytes;
    *count_out = count;
    return TROUPE_OK;
}

void troupe_base64_encode(const void *bytes, size_t count, struct troupe_text *out)
{
    const unsigned char *from = bytes;

    for (size_t i = 0; i < count; i += 3) {
        uint32_t bits = (uint32_t)from[i] << 16;
        char digits[4];

        if (i + 1 < count)
            bits |= (uint32_t)from[i + 1] << 8;
        if (i + 2 < count)
            bits |= from[i + 2];
        digits[0] = alphabet[bits >> 18 & 63];
        digits[1] = alphabet[bits >> 12 & 63];
        digits[2] = '=';
        digits[3] = '=';
        if (i + 1 < count)
            digits[2] = alphabet[bits >> 6 & 63];
        if (i + 2 < count)
            digits[3] = alphabet[bits & 63];
        troupe_text_add_bytes(out, digits, 4);
    }
}
