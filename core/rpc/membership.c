#include "rpc/membership.h"
#include "config/config.h"
#include "base/memory.h"
#include "base/clock.h"
#include <tenrec/store.h>
#include <stdlib.h>
struct membership { struct tenrec_store *s; int rank, world; char name[128]; char (*names)[128]; const char **np; struct tenrec_member *mem; char **addr; int round; };
tenrec_status membership_find(const struct config_settings *s, struct loop *loop, uint64_t d, struct membership **ret, tenrec_error *err)
{ (void)loop;(void)d; char url[128]; struct membership *m = calloc(1,sizeof *m); sscanf(s->init_method, "%127[^?]?rank=%d&world_size=%d", url,&m->rank,&m->world);
  tenrec_status st = tenrec_store_open(url, 1000, &m->s, err); snprintf(m->name, sizeof m->name, "worker%d", m->rank); if (st) return st; *ret = m; return st; }
tenrec_status membership_join(struct membership *m, const char *a, uint64_t inc, uint64_t d, tenrec_error *err)
{ char key[64], val[256]; snprintf(key,sizeof key,"m/%d",m->rank); snprintf(val,sizeof val,"%llu %s",(unsigned long long)inc,a);
  tenrec_status st = tenrec_store_set(m->s,key,val,strlen(val)+1,1000,err);
  m->names=calloc(m->world,128); m->np=calloc(m->world,sizeof *m->np); m->mem=calloc(m->world,sizeof *m->mem);
  for (int i=0;i<m->world && !st;i++){ void *p; size_t n; snprintf(key,sizeof key,"m/%d",i); st=tenrec_store_get(m->s,key,clock_left_ms(d),&p,&n,err); if(st)break; snprintf(m->names[i],128,"worker%d",i); m->np[i]=m->names[i]; char *sp; uint64_t x=strtoull(p,&sp,10);
    m->mem[i]=(struct tenrec_member){sizeof *m->mem,i,x,m->names[i],strdup(sp+1)}; free(p);} return st; }
tenrec_status membership_sum(struct membership *m, int64_t a, uint64_t d, int64_t *r, tenrec_error *err)
{ char k[64]; int64_t n; m->round++; snprintf(k,sizeof k,"s%d",m->round); tenrec_store_add(m->s,k,a,1000,NULL,err); snprintf(k,sizeof k,"c%d",m->round); tenrec_store_add(m->s,k,1,1000,&n,err);
  snprintf(k,sizeof k,"r%d",m->round); if (n==m->world) tenrec_store_set(m->s,k,"",0,1000,err); const char *kk=k; tenrec_status st=tenrec_store_wait(m->s,&kk,1,clock_left_ms(d),err); if(st)return st; snprintf(k,sizeof k,"s%d",m->round); return tenrec_store_add(m->s,k,0,1000,r,err);}
tenrec_status membership_leave(struct membership *m, uint64_t d, tenrec_error *err){int64_t x; return membership_sum(m,0,d,&x,err);}
void membership_drop(struct membership *m){ if(!m)return; tenrec_store_drop(m->s); for(int i=0;m->mem&&i<m->world;i++)free((char*)m->mem[i].address); free(m->names);free(m->np);free(m->mem);free(m);}
tenrec_peer membership_rank(const struct membership *m){return m->rank;}
const char *membership_name(const struct membership *m){return m->name;}
uint32_t membership_world(const struct membership *m){return m->world;}
const char *const *membership_names(const struct membership *m){return m->np;}
const struct tenrec_member *membership_members(const struct membership *m){return m->mem;}
