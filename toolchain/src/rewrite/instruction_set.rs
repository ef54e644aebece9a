//! Which mnemonics exist, as data, and what kind each is.
//!
//! The verifier judges encodings; this table judges spellings, so that what cannot be confined is
//! refused with the line that says it. It may list an instruction that the verifier refuses (then
//! linking fails), never the other way round to any harm.

use std::collections::HashMap;
use std::sync::LazyLock;

/// What the rewriter does with an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Translate the operands.
    Plain,
    /// As `Plain`, and the last operand is only read.
    Compare,
    /// `lea` and the long NOPs: the memory operand is not accessed.
    Address,
    /// `push`, 64 bits.
    Push,
    /// `pop`, 64 bits.
    Pop,
    /// `call`
    Call,
    /// `jmp`
    Jump,
    /// A conditional jump.
    Conditional,
    /// `ret`
    Return,
    /// `leave`
    Leave,
    /// `endbr64`: where a landing pad goes.
    Landing,
    /// `ud2`, `int3`: control does not go on.
    Trap,
    /// A string instruction: `movs`, `stos`, `lods`, `cmps`, `scas`; the width in bytes.
    String(&'static str, u8),
    /// An instruction without effect on an extension: nothing is emitted.
    Nothing,
    /// A routine of the library stands for it, which keeps all registers that the instruction does.
    Routine(&'static str),
    /// Cannot be confined, and why.
    Refused(&'static str),
}

const CONDITIONS: &str =
    "o no b c nae ae nb nc e z ne nz be na a nbe s ns p pe np po l nge ge nl le ng g nle";

/// Integer instructions that take a width suffix (b, w, l, q) or none.
const INTEGER: &str = "add or adc sbb and sub xor mov inc dec not neg mul imul div idiv rol ror rcl rcr shl sal shr sar \
    xchg xadd cmpxchg bsf bsr bts btr btc shld shrd popcnt lzcnt tzcnt bswap movbe movnti crc32 andn bextr blsi blsr \
    blsmsk bzhi pdep pext mulx rorx sarx shlx shrx \
    adcx adox";
const COMPARE: &str = "cmp test bt";

/// Instructions without a suffix.
const BARE: &str = "movzbw movzbl movzbq movzwl movzwq movsbw movsbl movsbq movswl movswq movslq movzb movzw movzx movsx \
    movsxd movabs movabsq cbtw cwtl cltq cwtd cltd cqto cbw cwde cdqe cwd cdq cqo lahf sahf clc stc cmc \
    cmpxchg8b cmpxchg16b pause mfence lfence sfence prefetcht0 prefetcht1 prefetcht2 prefetchnta prefetchw nop \
    vzeroupper vzeroall";

/// SSE to SSE4.2, AES, PCLMUL and GFNI, each with a VEX form of the same name after `v`.
const SSE: &str = "addps addpd addss addsd subps subpd subss subsd mulps mulpd mulss mulsd divps divpd divss divsd \
    sqrtps sqrtpd sqrtss sqrtsd rcpps rcpss rsqrtps rsqrtss minps minpd minss minsd maxps maxpd maxss maxsd \
    andps andpd andnps andnpd orps orpd xorps xorpd movaps movapd movups movupd movss movsd movlps movlpd movhps \
    movhpd movhlps movlhps movmskps movmskpd movntps movntpd movntdq movntdqa movdqa movdqu movd movq movddup movshdup \
    movsldup lddqu unpcklps unpcklpd unpckhps unpckhpd shufps shufpd \
    cvtsi2ss cvtsi2ssl cvtsi2ssq cvtsi2sd cvtsi2sdl cvtsi2sdq cvtss2si cvtss2sil cvtss2siq cvtsd2si cvtsd2sil \
    cvtsd2siq cvttss2si cvttss2sil cvttss2siq cvttsd2si cvttsd2sil cvttsd2siq cvtss2sd cvtsd2ss cvtps2pd cvtpd2ps \
    cvtdq2ps cvtdq2pd cvtps2dq cvtpd2dq cvttps2dq cvttpd2dq cvtpd2psx cvtpd2psy cvtpd2dqx cvtpd2dqy cvttpd2dqx \
    cvttpd2dqy \
    addsubps addsubpd haddps haddpd hsubps hsubpd paddb paddw paddd paddq psubb psubw psubd psubq paddsb paddsw \
    paddusb paddusw psubsb psubsw psubusb psubusw pmullw pmulhw pmulhuw pmuludq pmaddwd pavgb pavgw pminub pmaxub \
    pminsw pmaxsw psadbw pand pandn por pxor psllw pslld psllq pslldq psrlw psrld psrlq psrldq psraw psrad pcmpeqb \
    pcmpeqw pcmpeqd pcmpgtb pcmpgtw pcmpgtd packsswb packssdw packuswb punpcklbw punpcklwd punpckldq punpcklqdq \
    punpckhbw punpckhwd punpckhdq punpckhqdq pshufd pshufhw pshuflw pextrw pinsrw pmovmskb \
    pshufb phaddw phaddd phaddsw phsubw phsubd phsubsw pmaddubsw pmulhrsw psignb psignw psignd pabsb pabsw pabsd palignr \
    blendps blendpd blendvps blendvpd pblendw pblendvb dpps dppd extractps insertps mpsadbw packusdw pcmpeqq pcmpgtq \
    pextrb pextrd pextrq pinsrb pinsrd pinsrq phminposuw pminsb pminsd pminuw pminud pmaxsb pmaxsd pmaxuw pmaxud \
    pmovsxbw pmovsxbd pmovsxbq pmovsxwd pmovsxwq pmovsxdq pmovzxbw pmovzxbd pmovzxbq pmovzxwd pmovzxwq pmovzxdq pmuldq \
    pmulld roundps roundpd roundss roundsd pcmpestri pcmpestrm pcmpistri pcmpistrm \
    aesenc aesenclast aesdec aesdeclast aesimc aeskeygenassist pclmulqdq pclmullqlqdq pclmulhqlqdq pclmullqhqdq \
    pclmulhqhqdq gf2p8mulb gf2p8affineqb gf2p8affineinvqb";

/// SHA, which has no VEX forms.
const SHA: &str = "sha1rnds4 sha1nexte sha1msg1 sha1msg2 sha256rnds2 sha256msg1 sha256msg2";

/// SSE comparisons that write flags only; each with a VEX form.
const SSE_COMPARE: &str = "comiss comisd ucomiss ucomisd ptest";

/// Predicates of `cmpps` and its relatives, and those that only the VEX forms have.
const PREDICATES: &str = "eq lt le unord neq nlt nle ord";
const VEX_PREDICATES: &str = "eq_uq nge ngt false neq_oq ge gt true eq_os lt_oq le_oq unord_s neq_us nlt_uq nle_uq ord_s \
    eq_us nge_uq ngt_uq false_os neq_os ge_oq gt_oq true_us";

/// AVX and AVX2 instructions with no SSE counterpart, F16C.
const AVX: &str = "vbroadcastss vbroadcastsd vbroadcastf128 vbroadcasti128 vextractf128 vextracti128 vinsertf128 \
    vinserti128 vmaskmovps vmaskmovpd vpmaskmovd vpmaskmovq vpermilps vpermilpd vperm2f128 vperm2i128 vpermd vpermps \
    vpermpd vpermq vpblendd vpbroadcastb vpbroadcastw vpbroadcastd vpbroadcastq vpsllvd vpsllvq vpsrlvd vpsrlvq \
    vpsravd vcvtph2ps vcvtps2ph";
const FMA_STEMS: &str = "vfmadd vfmsub vfnmadd vfnmsub";
const FMA_PACKED_STEMS: &str = "vfmaddsub vfmsubadd";

/// x87 arithmetic (images that use it are flagged).
const X87: &str = "fld flds fldl fldt fst fsts fstl fstp fstps fstpl fstpt fild filds fildl fildll fildq fist fists \
    fistl fistp fistps fistpl fistpll fistpq fisttp fisttps fisttpl fisttpll fisttpq fxch fadd fadds faddl faddp fsub \
    fsubs fsubl fsubp fsubr fsubrs fsubrl fsubrp fmul fmuls fmull fmulp fdiv fdivs fdivl fdivp fdivr fdivrs fdivrl \
    fdivrp fiadd fiadds fiaddl fisub fisubs fisubl fisubr fisubrs fisubrl fimul fimuls fimull fidiv fidivs fidivl \
    fidivr fidivrs fidivrl fchs fabs fsqrt frndint fscale fprem fprem1 fsin fcos fsincos fptan fpatan f2xm1 fyl2x \
    fyl2xp1 fxtract fld1 fldz fldpi fldl2e fldl2t fldlg2 fldln2 fcom fcoms fcoml fcomp fcomps fcompl fcompp fucom \
    fucomp fucompp fcomi fcomip fucomi fucomip ficom ficoms ficoml ficomp ficomps ficompl ftst fxam fnstsw fnstcw \
    fldcw ffree fincstp fdecstp fnop fnclex fcmovb fcmove fcmovbe fcmovu fcmovnb fcmovne fcmovnbe fcmovnu";

/// What is refused with a reason of its own: reason, mnemonics.
const REFUSED: &[(&str, &str)] = &[
    (
        "an extension makes no system calls; import a function of the host instead",
        "syscall sysenter sysexit sysret sysretq sysretl int int1 into icebp",
    ),
    (
        "it is privileged",
        "hlt cli sti in inb inw inl out outb outw outl insb insw insl outsb outsw outsl lgdt lidt lldt \
      ltr lmsw invd wbinvd wbnoinvd invlpg invpcid clts rdmsr wrmsr rdpmc vmcall vmfunc vmmcall",
    ),
    (
        "where the kernel's tables lie is not an extension's to ask",
        "sgdt sidt sldt str smsw",
    ),
    (
        "time is the host's to tell; import a clock service",
        "rdtsc rdtscp rdpid",
    ),
    (
        "random numbers are the host's to give; import a service",
        "rdrand rdseed rdrandl rdrandq rdseedl rdseedq",
    ),
    (
        "the flags register as a whole holds the direction, trap and alignment flags",
        "pushf pushfq popf popfq pushfw popfw std",
    ),
    (
        "it reaches memory through a register that it does not name, outside the window",
        "xlat xlatb enter maskmovq maskmovdqu vmaskmovdqu movdir64b movdiri enqcmd enqcmds clzero monitor mwait monitorx \
         mwaitx umonitor umwait tpause",
    ),
    (
        "far control transfers change segments",
        "lret lretq retf retfq iret iretq iretl ljmp lcall ljmpq lcallq",
    ),
    (
        "branches on rcx are not in the allow list; test the register and use jne or je",
        "loop loope loopne loopz loopnz jrcxz jecxz jcxz",
    ),
    (
        "MMX registers would be left behind in the host's floating-point state; use SSE2",
        "emms femms maskmovq movq2dq movdq2q cvtpi2ps cvtpi2pd cvtps2pi cvtpd2pi cvttps2pi cvttpd2pi movntq pshufw",
    ),
    (
        "it reads or replaces floating-point state that may be the host's",
        "fldenv fstenv fnstenv fsave fnsave frstor fxsave fxrstor fxsave64 fxrstor64 finit fninit fclex fstcw fstsw wait \
         fwait xsave xsave64 xsaveopt xsaveopt64 xsavec xsaves xrstor xrstor64 xsetbv",
    ),
    (
        "the control bits of MXCSR belong to the host",
        "ldmxcsr stmxcsr vldmxcsr vstmxcsr",
    ),
    (
        "segment registers and their bases are the confinement",
        "rdfsbase rdgsbase wrfsbase wrgsbase swapgs lds les lfs lgs lss verr verw lar lsl arpl rdpkru wrpkru",
    ),
    (
        "gathers are not in the allow list; compile with -mtune-ctrl=^use_gather",
        "vgatherdps vgatherdpd vgatherqps vgatherqpd vpgatherdd vpgatherdq vpgatherqd vpgatherqq",
    ),
    (
        "caches are shared with the host",
        "clflush clflushopt clwb cldemote",
    ),
    ("transactions can hide a fault", "xbegin xend xabort xtest"),
    (
        "the shadow stack belongs to the host",
        "rdsspd rdsspq incsspd incsspq saveprevssp rstorssp wrssd wrssq setssbsy clrssbsy endbr32",
    ),
    (
        "it moves 16 bits on a stack of 64-bit slots",
        "pushw popw callw retw",
    ),
];

static TABLE: LazyLock<HashMap<String, Class>> = LazyLock::new(build);

fn build() -> HashMap<String, Class> {
    let mut table = HashMap::new();
    let mut add = |name: String, class: Class| {
        table.insert(name, class);
    };
    for (words, class) in [
        (INTEGER, Class::Plain),
        (COMPARE, Class::Compare),
        ("lea nop", Class::Address),
    ] {
        for word in words.split_whitespace() {
            for suffix in ["", "b", "w", "l", "q"] {
                add(format!("{word}{suffix}"), class);
            }
        }
    }
    for word in BARE.split_whitespace() {
        add(word.to_owned(), Class::Plain);
    }
    add("nop".to_owned(), Class::Address);
    for condition in CONDITIONS.split_whitespace() {
        add(format!("set{condition}"), Class::Plain);
        add(format!("set{condition}b"), Class::Plain);
        for suffix in ["", "w", "l", "q"] {
            add(format!("cmov{condition}{suffix}"), Class::Plain);
        }
        add(format!("j{condition}"), Class::Conditional);
    }
    for (words, class) in [(SSE, Class::Plain), (SSE_COMPARE, Class::Compare)] {
        for word in words.split_whitespace() {
            add(word.to_owned(), class);
            add(format!("v{word}"), class);
        }
    }
    for kind in ["ps", "pd", "ss", "sd"] {
        add(format!("cmp{kind}"), Class::Plain);
        add(format!("vcmp{kind}"), Class::Plain);
        for predicate in PREDICATES.split_whitespace() {
            add(format!("cmp{predicate}{kind}"), Class::Plain);
        }
        for predicate in PREDICATES
            .split_whitespace()
            .chain(VEX_PREDICATES.split_whitespace())
        {
            add(format!("vcmp{predicate}{kind}"), Class::Plain);
        }
        for order in ["132", "213", "231"] {
            for stem in FMA_STEMS.split_whitespace() {
                add(format!("{stem}{order}{kind}"), Class::Plain);
            }
            if kind.starts_with('p') {
                for stem in FMA_PACKED_STEMS.split_whitespace() {
                    add(format!("{stem}{order}{kind}"), Class::Plain);
                }
            }
        }
    }
    for word in [AVX, SHA, X87].into_iter().flat_map(str::split_whitespace) {
        add(word.to_owned(), Class::Plain);
    }
    for word in ["vtestps", "vtestpd"] {
        add(word.to_owned(), Class::Compare);
    }
    for (words, class) in [
        ("push pushq", Class::Push),
        ("pop popq", Class::Pop),
        ("call callq", Class::Call),
        ("jmp jmpq", Class::Jump),
        ("ret retq", Class::Return),
        ("leave leaveq", Class::Leave),
        ("endbr64", Class::Landing),
        ("ud2 int3", Class::Trap),
        ("cld", Class::Nothing),
        ("cpuid", Class::Routine("__postern_cpuid")),
        ("xgetbv", Class::Routine("__postern_xgetbv")),
    ] {
        for word in words.split_whitespace() {
            add(word.to_owned(), class);
        }
    }
    for (reason, words) in REFUSED {
        for word in words.split_whitespace() {
            add(word.to_owned(), Class::Refused(reason));
        }
    }
    table
}

/// The kind of the instruction `mnemonic` with `operands` operands; none if there is no such
/// instruction here. (`movsb` and `movsl`, `movsd` and `cmpsd` name different instructions with
/// operands and without.)
pub fn classify(mnemonic: &str, operands: usize) -> Option<Class> {
    if operands == 0 {
        for stem in ["movs", "stos", "lods", "cmps", "scas"] {
            if let Some(suffix) = mnemonic.strip_prefix(stem) {
                let width = match suffix {
                    "b" => 1,
                    "w" => 2,
                    "l" | "d" => 4,
                    "q" => 8,
                    _ => continue,
                };
                return Some(Class::String(stem, width));
            }
        }
    }
    if operands == 2 && matches!(mnemonic, "movsb" | "movsw" | "movsl") {
        return Some(Class::Plain);
    }
    TABLE.get(mnemonic).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings() {
        assert_eq!(classify("movsd", 2), Some(Class::Plain));
        assert_eq!(classify("movsd", 0), Some(Class::String("movs", 4)));
        assert_eq!(classify("vfmadd231pd", 3), Some(Class::Plain));
        assert_eq!(classify("vcmpnge_uqps", 4), Some(Class::Plain));
        assert_eq!(classify("cmovnbeq", 2), Some(Class::Plain));
        assert!(matches!(classify("syscall", 0), Some(Class::Refused(_))));
        assert_eq!(classify("leaq", 2), Some(Class::Address));
        assert_eq!(classify("int3", 0), Some(Class::Trap));
        assert_eq!(classify("frobnicate", 0), None);
        assert_eq!(classify("vaddsubps", 3), Some(Class::Plain));
    }

    #[test]
    fn nothing_is_both_refused_and_allowed() {
        for (_, words) in REFUSED {
            for word in words.split_whitespace() {
                assert!(
                    matches!(classify(word, 1), Some(Class::Refused(_))),
                    "{word}"
                );
            }
        }
    }
}
