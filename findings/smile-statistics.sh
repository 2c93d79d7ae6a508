#!/bin/sh
# Expected: the median of four numbers is the mean of the middle two, a variance does not depend on the mean, a divergence is never
#   negative.
# Happens: median, q1 and q3 are one of the numbers: the median of 1, 2, 3, 4 is 3. The variance is a difference of sums of squares: that of
#   three numbers at 1e9 is 0 instead of 1. A class with probability 0 in the second distribution is left out of the Kullback-Leibler
#   divergence, which is −.35 there instead of ∞. The AUC of NaN scores depends on the order of labels.
# Versions: smile 3.1.1, the newest for Java 17.
# Matters: two members of an ensemble, or an even number of folds, have the larger one as median. Scores with an offset have no spread. The
#   distribution that misses a class is the closest of all.
# Source: seen by running.
. "$(dirname "$0")/lib.sh"
jars com.github.haifengl:smile-core:3.1.1 com.github.haifengl:smile-base:3.1.1 org.slf4j:slf4j-api:2.0.16
cat >Finding.java <<'END'
import smile.math.MathEx;
import smile.validation.metric.AUC;

public class Finding {
    static int changed;

    static void seen(String what, double got, double want) {
        boolean ok = Double.compare(got, want) == 0 || Math.abs(got - want) < 1e-3;
        System.out.println((ok ? "as described  " : "CHANGED       ") + what + ": " + (float) got);
        changed |= ok ? 0 : 1;
    }

    public static void main(String[] args) {
        seen("median of 1, 2, 3", MathEx.median(new double[] {1, 2, 3}), 2);
        seen("median of 1, 2, 3, 4", MathEx.median(new double[] {1, 2, 3, 4}), 3);
        seen("median of 0, 1", MathEx.median(new double[] {0, 1}), 1);
        seen("first quartile of 1, 2, 3, 4", MathEx.q1(new double[] {1, 2, 3, 4}), 2);
        for (double offset : new double[] {0, 1e6, 1e9})
            seen("variance of 0, 1, 2 and " + offset, MathEx.var(new double[] {offset, offset + 1, offset + 2}), offset > 1e8 ? 0 : 1);
        seen("divergence of (.5, .5) from (.9, .1)", MathEx.KullbackLeiblerDivergence(new double[] {.5, .5}, new double[] {.9, .1}), .5108);
        seen("divergence of (.5, .5) from (1, 0)", MathEx.KullbackLeiblerDivergence(new double[] {.5, .5}, new double[] {1, 0}), -.3466);
        double nan = Double.NaN;
        double[] scores = {nan, nan, nan, nan};
        seen("AUC of NaN, zeros first", AUC.of(new int[] {0, 0, 1, 1}, scores), 0);
        seen("AUC of NaN, ones first", AUC.of(new int[] {1, 1, 0, 0}, scores), 1);
        seen("AUC of equal scores, ones first", AUC.of(new int[] {1, 1, 0, 0}, new double[4]), .5);
        System.exit(changed);
    }
}
END
java -cp "*" Finding.java
