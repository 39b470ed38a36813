//go:build !purego

#include "textflag.h"

// See blocks.go for what these functions promise. Registers of both:
//
//	SI text, CX length, AX offset of the block, DX 1 when the byte before the
//	block escapes its first, BX every second bit, Y14 backslashes, Y15 quotes

#define FILL(name, byte) \
	DATA name<>+0(SB)/8, $(byte*0x0101010101010101); \
	DATA name<>+8(SB)/8, $(byte*0x0101010101010101); \
	DATA name<>+16(SB)/8, $(byte*0x0101010101010101); \
	DATA name<>+24(SB)/8, $(byte*0x0101010101010101); \
	GLOBL name<>(SB), RODATA|NOPTR, $32

FILL(quote, 0x22)
FILL(backslash, 0x5C)
FILL(control, 0x1F)
FILL(nibble, 0x0F)
FILL(top, 0x80)
FILL(third, 0x60)  // 0xE0-0x80: what is left has its top bit when a lead of three or four stood there
FILL(fourth, 0x70) // 0xF0-0x80

#define TABLE(name, low, high) \
	DATA name<>+0(SB)/8, $low; \
	DATA name<>+8(SB)/8, $high; \
	GLOBL name<>(SB), RODATA|NOPTR, $16

// A character may follow a backslash when its nibbles have a bit in common:
// 1 for "/ (0x2_), 2 for \ (0x5_), 4 for bfn (0x6_), 8 for rt (0x7_).
TABLE(escapeLow, 0x00040008000D0000, 0x0104000200000000)
TABLE(escapeHigh, 0x0804020000010000, 0)

// The three lookups that classify two neighbouring bytes of UTF-8, after
// Keiser and Lemire, "Validating UTF-8 in less than one instruction per byte":
// each bit is a fault, found where all three tables have it; bit 7 means two
// continuation bytes in a row, which is right after a lead of three or four.
TABLE(firstHigh, 0x0202020202020202, 0x4915012180808080)
TABLE(firstLow, 0xCBCBCB8B8383A3E7, 0xCBCBDBCBCBCBCBCB)
TABLE(secondHigh, 0x0101010101010101, 0x01010101BABAAEE6)

// MASK sets the bits of m where the block Y0, Y1 has the bytes of y.
#define MASK(y, m) \
	VPCMPEQB y, Y0, Y2; \
	VPCMPEQB y, Y1, Y3; \
	VPMOVMSKB Y2, m; \
	VPMOVMSKB Y3, R9; \
	SHLQ $32, R9; \
	ORQ R9, m

// ESCAPED takes the backslashes R8 and sets R12 to the characters that one of
// them escapes, DX to whether the next block's first one is: of a run of
// backslashes, every second escapes the character behind it.
#define ESCAPED \
	MOVQ DX, R9; \
	NOTQ R9; \
	ANDQ R8, R9; \
	LEAQ (R9)(R9*1), R12; \
	ORQ BX, R12; \
	SUBQ R9, R12; \
	XORQ BX, R12; \
	MOVQ R12, R9; \
	ANDQ R8, R9; \
	ORQ DX, R8; \
	XORQ R8, R12; \
	MOVQ R9, DX; \
	SHRQ $63, DX

// UTF8 checks the 32 bytes y at offset off and collects faults in acc.
#define UTF8(y, off, acc) \
	VMOVDQU (off-1)(SI)(AX*1), Y2; \
	VPSRLW $4, Y2, Y3; \
	VPAND Y13, Y3, Y3; \
	VPSHUFB Y3, Y9, Y3; \
	VPAND Y13, Y2, Y2; \
	VPSHUFB Y2, Y8, Y2; \
	VPAND Y2, Y3, Y3; \
	VPSRLW $4, y, Y2; \
	VPAND Y13, Y2, Y2; \
	VPSHUFB Y2, Y7, Y2; \
	VPAND Y2, Y3, Y3; \
	VMOVDQU (off-2)(SI)(AX*1), Y2; \
	VPSUBUSB third<>(SB), Y2, Y2; \
	VMOVDQU (off-3)(SI)(AX*1), acc; \
	VPSUBUSB fourth<>(SB), acc, acc; \
	VPOR acc, Y2, Y2; \
	VPAND top<>(SB), Y2, Y2; \
	VPXOR Y3, Y2, acc

// func checkAVX2(p *byte, n int) int
TEXT ·checkAVX2(SB), NOSPLIT, $0-24
	MOVQ p+0(FP), SI
	MOVQ n+8(FP), CX
	XORQ AX, AX
	XORQ DX, DX
	XORQ DI, DI // DX before the block
	MOVQ $0xAAAAAAAAAAAAAAAA, BX
	VMOVDQU quote<>(SB), Y15
	VMOVDQU backslash<>(SB), Y14
	VMOVDQU nibble<>(SB), Y13
	VMOVDQU control<>(SB), Y12
	VBROADCASTI128 escapeLow<>(SB), Y11
	VBROADCASTI128 escapeHigh<>(SB), Y10
	VBROADCASTI128 firstHigh<>(SB), Y9
	VBROADCASTI128 firstLow<>(SB), Y8
	VBROADCASTI128 secondHigh<>(SB), Y7
	SUBQ $64, CX
	JMP more
block:
	VMOVDQU (SI)(AX*1), Y0
	VMOVDQU 32(SI)(AX*1), Y1
	// No control characters.
	VPMINUB Y12, Y0, Y2
	VPCMPEQB Y0, Y2, Y2
	VPMINUB Y12, Y1, Y3
	VPCMPEQB Y1, Y3, Y3
	VPOR Y2, Y3, Y2
	VPTEST Y2, Y2
	JNZ done
	// No escapes but the short ones.
	MASK(Y15, R10)
	MASK(Y14, R8)
	MOVQ R8, R9
	ORQ DX, R9
	JZ unescaped
	ESCAPED
	NOTQ R12
	ANDQ R12, R10
	VPSRLW $4, Y0, Y2
	VPAND Y13, Y2, Y2
	VPSHUFB Y2, Y10, Y2
	VPSHUFB Y0, Y11, Y3
	VPAND Y2, Y3, Y2
	VPSRLW $4, Y1, Y3
	VPAND Y13, Y3, Y3
	VPSHUFB Y3, Y10, Y3
	VPSHUFB Y1, Y11, Y4
	VPAND Y3, Y4, Y3
	VPXOR Y4, Y4, Y4
	VPCMPEQB Y4, Y2, Y2
	VPCMPEQB Y4, Y3, Y3
	VPMOVMSKB Y2, R8
	VPMOVMSKB Y3, R9
	SHLQ $32, R9
	ORQ R9, R8
	NOTQ R12
	TESTQ R8, R12
	JNZ done
unescaped:
	// No quote that ends the string.
	TESTQ R10, R10
	JNZ done
	// Proper UTF-8, if it is not ASCII.
	VPOR Y0, Y1, Y2
	VPOR -3(SI)(AX*1), Y2, Y2
	VPMOVMSKB Y2, R8
	TESTL R8, R8
	JZ good
	UTF8(Y0, 0, Y4)
	UTF8(Y1, 32, Y5)
	VPOR Y4, Y5, Y4
	VPTEST Y4, Y4
	JNZ done
good:
	MOVQ DX, DI
	ADDQ $64, AX
more:
	CMPQ AX, CX
	JLE block
done:
	SUBQ DI, AX
	VZEROUPPER
	MOVQ AX, ret+16(FP)
	RET

// func skipAVX2(p *byte, n int) int
TEXT ·skipAVX2(SB), NOSPLIT, $0-24
	MOVQ p+0(FP), SI
	MOVQ n+8(FP), CX
	XORQ AX, AX
	XORQ DX, DX
	MOVQ $0xAAAAAAAAAAAAAAAA, BX
	VMOVDQU quote<>(SB), Y15
	VMOVDQU backslash<>(SB), Y14
	SUBQ $64, CX
	JMP next
step:
	VMOVDQU (SI)(AX*1), Y0
	VMOVDQU 32(SI)(AX*1), Y1
	MASK(Y15, R10)
	MASK(Y14, R8)
	MOVQ R8, R9
	ORQ DX, R9
	JZ plain
	ESCAPED
	NOTQ R12
	ANDQ R12, R10
plain:
	TESTQ R10, R10
	JNZ found
	ADDQ $64, AX
next:
	CMPQ AX, CX
	JLE step
	SUBQ DX, AX
	JMP out
found:
	BSFQ R10, R10
	ADDQ R10, AX
out:
	VZEROUPPER
	MOVQ AX, ret+16(FP)
	RET
