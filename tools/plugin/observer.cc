// SPDX-License-Identifier: Apache-2.0
// NAME.cc - an observer that writes to a file, its address: "open", the function of each span, each
// worker that leaves with the number of series of the process, and "close". No exception may leave
// a function that the core calls.
#include <cerrno>
#include <cstdio>
#include <memory>
#include <new>
#include <string>
#include <tenrec/observer_plugin.h>

namespace
{

struct Options {
    const char *word;
};

struct Close {
    void operator()(std::FILE *f) const
    {
        std::fclose(f);
    }
};

using File = std::unique_ptr<std::FILE, Close>;

struct Observer {
    std::string path;

    void add(const char *text) const
    {
        if (const File f{ std::fopen(path.c_str(), "a") })
            std::fprintf(f.get(), "%s ", text);
    }
};

Observer &observer_of(const tenrec_observer *self)
{
    return *static_cast<Observer *>(self->impl);
}

void close(tenrec_observer *self)
{
    const std::unique_ptr<Observer> observer(&observer_of(self));

    observer->add("close");
}

// Takes the span, and ends it once.
void span(tenrec_observer *self, tenrec_span *s)
{
    observer_of(self).add(s->function);
    self->host->span_done(self, s, true);
}

// No span waits here.
void leave(tenrec_observer *self, const tenrec_origin *origin)
{
    tenrec_snapshot *all;
    tenrec_error err;
    char text[200];

    if (self->host->snapshot(self, &all, &err) != TENREC_OK)
        return;
    std::snprintf(text, sizeof text, "%s:%zu", origin->worker, all->n_series);
    self->host->snapshot_free(self, all);
    observer_of(self).add(text);
}

const tenrec_observer_ops ops = {
    .size = sizeof ops, .close = close, .span = span, .leave = leave
};

const tenrec_option options[] = {
    { .key = "word",
      .type = TENREC_OPT_STRING,
      .offset = offsetof(Options, word),
      .def = "open",
      .help = "What it adds first." },
};

} // namespace

tenrec_status tenrec_construct_options(void *, tenrec_error *)
{
    return TENREC_OK; // no rule spans several options
}

tenrec_status tenrec_init_observer(const tenrec_observer_init *in, tenrec_observer *self,
                                   tenrec_error *err)
try {
    if (!File{ std::fopen(in->address, "a") })
        return tenrec_fail_errno(err, TENREC_EINVAL, errno, "cannot write '%s'", in->address);
    self->impl = new Observer{ in->address };
    self->ops = &ops;
    observer_of(self).add(static_cast<const Options *>(in->options)->word);
    return TENREC_OK;
} catch (const std::bad_alloc &) {
    return tenrec_fail(err, TENREC_ENOMEM, "no memory");
}

const struct tenrec_plugin tenrec_plugin = {
    TENREC_OBSERVER_PLUGIN_HEADER,
    .name = "NAME",
    .version = "1.0",
    .summary = "Writes the names of spans to a file.",
    TENREC_PLUGIN_OPTIONS(options, Options),
};
