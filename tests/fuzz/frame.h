/* SPDX-License-Identifier: Apache-2.0 */
/* frame.h - what an honest peer sends, for a target that then spoils it. */
#ifndef TENREC_TESTS_FUZZ_FRAME_H
#define TENREC_TESTS_FUZZ_FRAME_H

#include "agent/agent.h"
#include "pipe/pipe.h"
#include "step.h"
#include "wire/descriptor.h"

/* Frames that are made one behind the other. */
struct frames {
    unsigned char bytes[1 << 18];
    size_t len;
};

/* A requested hello if `requested`, else a spontaneous one. */
void frames_add_hello(struct frames *f, bool requested, uint64_t id);
/* A Brochure of those of the agent's transports and channels whose bits are set, by a
 * peer that says that it is member `rank` in life `life`; version 0: says nothing. */
struct frame_claim {
    uint32_t transports, channels;
    uint32_t version;
    tenrec_peer rank;
    uint64_t life, capabilities;
};
void frames_add_brochure(struct frames *f, const struct agent *a, const struct frame_claim *claim);
/* The answer to hello and Brochure that the agent wrote. Returns false if these are not
 * all there. */
bool frames_add_answer(struct frames *f, const struct agent *a, const struct frame_claim *claim,
                       const unsigned char *wrote, size_t len);

/* How the bytes of tensors travel. */
enum frame_way { WAY_PLAIN, WAY_PULL, WAY_PULL_BAD, WAY_LANES, WAY_MAPPED, WAY_PASSED, WAYS };
struct frame_message {
    int32_t type;
    int64_t id;
    size_t payload_len;
    uint32_t n_tensors, tensor_len;
    enum frame_way way;
    bool shortlist, longwinded; /* longwinded: not in the form that is recognised at once */
    bool wrong_list, targetless;
    uint8_t packet;                      /* WAY_PASSED: of the descriptors */
    struct tenrec_device source, target; /* of all tensors; kind 0: the host */
    const struct descriptor_note *notes; /* of each tensor; NULL: as `way` wants them */
};
/* All frames on the descriptor connection. */
void frames_add_message(struct frames *f, const struct pipe *p, const struct frame_message *m);
void frames_add_object(struct frames *f, const void *object, size_t len);
/* A tensor's bytes. */
void frames_add_bytes(struct frames *f, uint64_t len);

/* What the data of a step does to the frames: three bytes each, a place (of all bytes, from
 * the end with the highest bit set) and what is added to the byte there. */
void frames_spoil(struct frames *f, const struct fuzz_step *s);

/* Memory of this process that tensors are read from. */
#define FRAME_MEMORY 49152
extern unsigned char frame_memory[FRAME_MEMORY];

#endif
