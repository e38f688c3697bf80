/* The version of the interface. */
#ifndef TROUPE_VERSION_H
#define TROUPE_VERSION_H

#define TROUPE_VERSION "0.1.0"

#endif
