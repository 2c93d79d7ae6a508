#include "textflag.h"

// Four weights at a time. Products and sums are rounded one by one, never
// fused: the results have the bits of kernels.go.

// func welfordAVX2(mean, variance *float64, row *float32, n int, share float64)
TEXT ·welfordAVX2(SB), NOSPLIT, $0-40
	MOVQ         mean+0(FP), DI
	MOVQ         variance+8(FP), SI
	MOVQ         row+16(FP), DX
	MOVQ         n+24(FP), CX
	VBROADCASTSD share+32(FP), Y7
	XORQ         AX, AX

loop:
	VCVTPS2PD (DX)(AX*4), Y0 // v
	VMOVUPD   (DI)(AX*8), Y1 // mean
	VMOVUPD   (SI)(AX*8), Y4 // variance
	VSUBPD    Y1, Y0, Y2     // before = v − mean
	VMULPD    Y7, Y2, Y3
	VADDPD    Y3, Y1, Y1     // mean += before·share
	VMOVUPD   Y1, (DI)(AX*8)
	VSUBPD    Y1, Y0, Y0     // v − mean
	VMULPD    Y0, Y2, Y2     // before·(v − mean)
	VSUBPD    Y4, Y2, Y2
	VMULPD    Y7, Y2, Y2
	VADDPD    Y2, Y4, Y4     // variance += (before·(v − mean) − variance)·share
	VMOVUPD   Y4, (SI)(AX*8)
	ADDQ      $4, AX
	CMPQ      AX, CX
	JLT       loop
	VZEROUPPER
	RET

// func subtractAVX2(dst, row *float32, mean *float64, n int)
TEXT ·subtractAVX2(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ row+8(FP), DX
	MOVQ mean+16(FP), SI
	MOVQ n+24(FP), CX
	XORQ AX, AX

loop:
	VCVTPS2PD  (DX)(AX*4), Y0
	VSUBPD     (SI)(AX*8), Y0, Y0
	VCVTPD2PSY Y0, X0
	VMOVUPS    X0, (DI)(AX*4)
	ADDQ       $4, AX
	CMPQ       AX, CX
	JLT        loop
	VZEROUPPER
	RET
