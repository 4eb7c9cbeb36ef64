/* SPDX-License-Identifier: Apache-2.0 */
/* tenrec/device.h - devices, and the order of work on them.
 *
 * Work of a device runs in streams: work queued on one stream runs in order, work
 * queued on two streams in any order. Tenrec keeps the order without making the host
 * wait, by one rule: work on a tensor is ordered on the *current streams* of the thread that
 * hands it over or receives it.
 *
 * - A call sends its tensors when the work queued on the caller's current streams is done. The
 *   caller need not wait for that.
 * - A function runs with current streams of its own, on which its arguments are
 *   ready. Its results have to be ready on them when it returns (or calls
 *   tenrec_call_return). They are other streams for each call: two calls are in no order.
 * - A wait for a future makes the waiting thread's current streams wait for the
 *   value, and a callback runs with streams on which it is ready.
 *
 * A thread that has set no stream uses the default stream of each device, 0. The
 * numbers are CUstream or cudaStream_t. Devices are available once a backend of some worker of
 * this process has reported them: from tenrec_init_rpc of the first worker whose group uses
 * devices.
 */
#ifndef TENREC_DEVICE_H
#define TENREC_DEVICE_H

#include <tenrec/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* A device of the caller, and the device of the callee where its tensors go.
 * Never grows: it is passed in arrays. */
struct tenrec_device_pair {
    struct tenrec_device from;
    struct tenrec_device to;
};

/* The stream on which this thread works at `device`; in a function that answers
 * a call, that of the call. 0 if none was set, or none exists.
 *
 * source   torch.cuda.current_stream
 */
uint64_t tenrec_stream_get_current(struct tenrec_device device);

/* Sets the current stream of this thread (in a function: of this call) for its device. The
 * stream must live until all work queued on it is done.
 *
 * errors   EINVAL (the host has no streams), ETOOBIG (more than 32 devices), ENOMEM
 * source   torch.cuda.set_stream
 */
tenrec_status tenrec_stream_set_current(const struct tenrec_stream *s, tenrec_error *err);

/* Returns a stream of the backend's pool, handed out in turn, so that other users may share it.
 * Never destroyed.
 *
 * errors   EUNSUPPORTED (no such devices here), those of the driver
 */
tenrec_status tenrec_stream_get(struct tenrec_device device, struct tenrec_stream *ret,
                                tenrec_error *err);

/* Makes later work on `then` wait for the work queued on `first` now; the host does not wait.
 *
 * source   torch.cuda.Stream.wait_stream
 */
tenrec_status tenrec_stream_order(const struct tenrec_stream *first,
                                  const struct tenrec_stream *then, tenrec_error *err);

/* Blocks until all work queued on `s` now is done.
 *
 * source   torch.cuda.Stream.synchronize
 */
tenrec_status tenrec_stream_wait(const struct tenrec_stream *s, tenrec_error *err);

/* ---- tensors on devices ------------------------------------------------------- */

/* A copy of a contiguous tensor on `device`, ordered on the current streams of
 * both. To the host it waits until the elements are there.
 *
 * errors   EUNSUPPORTED (not contiguous, no such devices here), ENOMEM
 * source   torch.Tensor.to
 */
tenrec_status tenrec_tensor_to(struct tenrec_tensor *t, struct tenrec_device device,
                               struct tenrec_tensor **ret, tenrec_error *err);

/* Makes the thread's current stream wait for the elements of `t`: for a tensor kept from an
 * earlier call. Waits for futures include this. */
tenrec_status tenrec_tensor_wait(struct tenrec_tensor *t, tenrec_error *err);

/* Declares that `t` is also used on that stream: its memory, if allocated by Tenrec, is reused
 * only after the work queued there when `t` is dropped.
 *
 * source   torch.Tensor.record_stream
 */
void tenrec_tensor_record_stream(struct tenrec_tensor *t, const struct tenrec_stream *s);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
