// SPDX-License-Identifier: Apache-2.0
// NAME.cc - a backend whose only peer is the worker itself, to begin with. No exception may leave a
// function that the core calls.
#include <cstring>
#include <memory>
#include <new>
#include <tenrec/plugin.h>

namespace
{

struct Options {
    bool refuse;
};

struct Release {
    void operator()(tenrec_msg *msg) const
    {
        msg->release(msg);
    }
};

// A message that is released unless it is passed on.
using Message = std::unique_ptr<tenrec_msg, Release>;

class Agent
{
  public:
    Agent(tenrec_agent *self, const tenrec_init &in)
        : self_(self), me_(in.me), options_(static_cast<const Options *>(in.options))
    {
    }

    // Takes the message and calls `done` once, with no lock held.
    void send(tenrec_peer to, Message msg, tenrec_done done)
    {
        tenrec_error err;
        Message copy;

        if (options_->refuse)
            tenrec_fail(&err, TENREC_ECONNECT, "NAME refuses every send ('refuse' is set)");
        else if (to != me_)
            tenrec_fail(&err, TENREC_EPEER_UNKNOWN, "NAME delivers only to peer %d, not to %d", me_,
                        to);
        else if ((msg->type & TENREC_MSG_REQUEST_BIT) && !self_->host->accepts(self_))
            tenrec_fail(&err, TENREC_EAGAIN, "the call queue of peer %d is full", me_);
        else
            copy = receive(*msg, &err);
        msg.reset();
        if (!copy) {
            if (done.fn)
                done.fn(done.arg, &err);
            return;
        }
        tenrec_done_succeed(done);
        self_->host->deliver_outer(self_, me_, copy.release());
    }

  private:
    // Makes the message that the receiver owns; memcpy stands in for the wire. The host allocates
    // the message, and place() sets the address of each tensor.
    Message receive(const tenrec_msg &msg, tenrec_error *err) const
    {
        Message copy(self_->host->msg_new(self_, msg.payload_len, msg.n_tensors));

        if (!copy) {
            tenrec_fail(err, TENREC_ENOMEM, "no memory for a message of %llu bytes",
                        static_cast<unsigned long long>(msg.payload_len));
            return copy;
        }
        copy->type = msg.type;
        copy->id = msg.id;
        copy->deadline_ns = msg.deadline_ns;
        copy->key_len = msg.key_len;
        if (msg.payload_len)
            std::memcpy(copy->payload, msg.payload, msg.payload_len);
        for (uint32_t i = 0; i < msg.n_tensors; i++) {
            *tenrec_msg_tensor(copy.get(), i) = *tenrec_msg_tensor(&msg, i);
            tenrec_msg_tensor(copy.get(), i)->data = nullptr;
        }
        if (copy->n_tensors && self_->host->place(self_, me_, copy.get(), err) != TENREC_OK)
            return nullptr;
        for (uint32_t i = 0; i < msg.n_tensors; i++)
            if (tenrec_msg_tensor(&msg, i)->bytes)
                std::memcpy(tenrec_msg_tensor(copy.get(), i)->data,
                            tenrec_msg_tensor(&msg, i)->data, tenrec_msg_tensor(&msg, i)->bytes);
        return copy;
    }

    tenrec_agent *self_;
    tenrec_peer me_;
    const Options *options_; // borrowed until destroy
};

void send(tenrec_agent *self, tenrec_peer to, tenrec_msg *msg, tenrec_done done)
{
    static_cast<Agent *>(self->impl)->send(to, Message(msg), done);
}

void destroy(tenrec_agent *self)
{
    delete static_cast<Agent *>(self->impl);
}

const tenrec_agent_ops ops = {
    .size = sizeof ops,
    .send = send,
    .destroy = destroy,
};

const tenrec_option options[] = {
    { .key = "refuse",
      .type = TENREC_OPT_BOOL,
      .offset = offsetof(Options, refuse),
      .def = "false",
      .help = "Fail every send, to try out error paths." },
};

} // namespace

tenrec_status tenrec_construct_options(void *, tenrec_error *)
{
    return TENREC_OK; // no rule spans several options
}

tenrec_status tenrec_init_agent(const tenrec_init *in, tenrec_agent *self, tenrec_error *err)
{
    self->impl = new (std::nothrow) Agent(self, *in);
    if (!self->impl)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the agent");
    self->ops = &ops;
    return TENREC_OK;
}

const struct tenrec_plugin tenrec_plugin = {
    TENREC_PLUGIN_HEADER,
    .flags = TENREC_PLUGIN_UNLOADABLE | TENREC_PLUGIN_LOOPBACK_ONLY,
    .name = "NAME",
    .version = "1.0",
    .summary = "Delivers each message to its sender.",
    TENREC_PLUGIN_OPTIONS(options, Options),
};
