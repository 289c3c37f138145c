/**
 * The additional runs of `npm run test:slow`, which `npm test` omits so that it takes minutes: more cases and harder
 * conditions. The assertions are the same.
 */
import { test } from 'vitest'

const thorough = process.env.THOROUGH === '1'

/** A number that is larger when thorough. */
export const amount = (usual: number, whenThorough: number): number => (thorough ? whenThorough : usual)

/** The first case and each `step`-th after it, or all cases when thorough. */
export const sample = <T>(cases: readonly T[], step: number): readonly T[] =>
  thorough ? cases : cases.filter((_, index) => index % step === 0)

/** As `test`, when thorough. A file needs at least one other `test`. */
export const thoroughTest = thorough ? test : (((): void => undefined) as unknown as typeof test)
