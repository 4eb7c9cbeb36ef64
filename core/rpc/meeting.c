#include "rpc/meeting.h"
tenrec_status meeting_find(const struct config_settings *s, struct loop *loop, uint64_t d, struct meeting **ret, tenrec_error *err){(void)s;(void)loop;(void)d;(void)ret;return tenrec_fail(err,TENREC_EUNSUPPORTED,"x");}
tenrec_status meeting_join(struct meeting *m, const char *a, uint64_t i, uint64_t d, tenrec_error *err){(void)m;(void)a;(void)i;(void)d;return tenrec_fail(err,TENREC_EUNSUPPORTED,"x");}
tenrec_status meeting_sum(struct meeting *m, int64_t a, uint64_t d, int64_t *r, tenrec_error *err){(void)m;(void)a;(void)d;(void)r;return tenrec_fail(err,TENREC_EUNSUPPORTED,"x");}
tenrec_status meeting_leave(struct meeting *m, uint64_t d, tenrec_error *err){(void)m;(void)d;return tenrec_fail(err,TENREC_EUNSUPPORTED,"x");}
void meeting_drop(struct meeting *m){(void)m;}
tenrec_peer meeting_rank(const struct meeting *m){(void)m;return 0;}
const char *meeting_name(const struct meeting *m){(void)m;return "";}
uint32_t meeting_world(const struct meeting *m){(void)m;return 0;}
const char *const *meeting_names(const struct meeting *m){(void)m;return NULL;}
const struct tenrec_member *meeting_members(const struct meeting *m){(void)m;return NULL;}
