/* All of Troupe's public interface. */
#ifndef TROUPE_TROUPE_H
#define TROUPE_TROUPE_H

#include "troupe/actor.h"
#include "troupe/log.h"
#include "troupe/runtime.h"
#include "troupe/session.h"
#include "troupe/status.h"
#include "troupe/tensor.h"
#include "troupe/version.h"

#endif
