/* Exports nothing itself; a plain dlsym would find all in what it depends on. */
extern int empty;
int empty;
