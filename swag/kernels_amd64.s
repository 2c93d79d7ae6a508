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

// func lowRankAVX2(dst, rows *float32, stride int, z *float32, k, n int)
//
// 32 weights at a time, so that four sums are under way.
TEXT ·lowRankAVX2(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ rows+8(FP), SI
	MOVQ stride+16(FP), R8
	MOVQ z+24(FP), DX
	MOVQ k+32(FP), R9
	MOVQ n+40(FP), CX
	XORQ AX, AX

weights:
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	LEAQ   (SI)(AX*4), R10
	XORQ   BX, BX

columns:
	VBROADCASTSS (DX)(BX*4), Y8
	VMULPS       (R10), Y8, Y4
	VMULPS       32(R10), Y8, Y5
	VMULPS       64(R10), Y8, Y6
	VMULPS       96(R10), Y8, Y7
	VADDPS       Y4, Y0, Y0
	VADDPS       Y5, Y1, Y1
	VADDPS       Y6, Y2, Y2
	VADDPS       Y7, Y3, Y3
	ADDQ         R8, R10
	INCQ         BX
	CMPQ         BX, R9
	JLT          columns

	VMOVUPS Y0, (DI)(AX*4)
	VMOVUPS Y1, 32(DI)(AX*4)
	VMOVUPS Y2, 64(DI)(AX*4)
	VMOVUPS Y3, 96(DI)(AX*4)
	ADDQ    $32, AX
	CMPQ    AX, CX
	JLT     weights
	VZEROUPPER
	RET

// func combineAVX2(dst *float32, mean, sd, z *float64, lowRank *float32, n int)
TEXT ·combineAVX2(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ mean+8(FP), SI
	MOVQ sd+16(FP), DX
	MOVQ z+24(FP), BX
	MOVQ lowRank+32(FP), R8
	MOVQ n+40(FP), CX
	XORQ AX, AX

loop:
	VMOVUPD    (BX)(AX*8), Y0
	VMULPD     (DX)(AX*8), Y0, Y0
	VCVTPS2PD  (R8)(AX*4), Y1
	VADDPD     Y1, Y0, Y0
	VADDPD     (SI)(AX*8), Y0, Y0
	VCVTPD2PSY Y0, X0
	VMOVUPS    X0, (DI)(AX*4)
	ADDQ       $4, AX
	CMPQ       AX, CX
	JLT        loop
	VZEROUPPER
	RET
