/* The floating-point environment. Its control bits are the host's: an extension rounds to nearest
 * and never traps, and the sticky flags are not read. So this is what C allows for an
 * implementation without access to them: questions are answered, changes are refused. */
#include <fenv.h>

static const fenv_t environment;
const fenv_t *_fe_dfl_env = &environment;
const fenv_t *_fe_nomask_env = &environment;

int fegetround(void) { return FE_TONEAREST; }
int fesetround(int mode) { return mode != FE_TONEAREST; }
int feclearexcept(int which) { return (void)which, 0; }
int feraiseexcept(int which) { return which != 0; }
int fetestexcept(int which) { return (void)which, 0; }
int fegetexceptflag(fexcept_t *out, int which) { return (void)which, *out = 0, 0; }
int fesetexceptflag(const fexcept_t *from, int which) { return (void)from, which != 0; }
int fegetenv(fenv_t *out) { return *out = environment, 0; }
int fesetenv(const fenv_t *from) { return (void)from, 0; }
int feholdexcept(fenv_t *out) { return fegetenv(out); }
int feupdateenv(const fenv_t *from) { return fesetenv(from); }
int feenableexcept(int which) { return which ? -1 : 0; }
int fedisableexcept(int which) { return (void)which, 0; }
int fegetexcept(void) { return 0; }
