/**
 * What `npm test` leaves out, so that it takes minutes, and `npm run test:slow` does: more of the same, harder
 * surroundings. What is asserted is the same.
 */
import { test } from 'vitest'

const thorough = process.env.THOROUGH === '1'

/** So many of something. */
export const amount = (usual: number, whenThorough: number): number => (thorough ? whenThorough : usual)

/** The first case and each `step`-th after it; all of them when thorough. */
export const sample = <T>(cases: readonly T[], step: number): readonly T[] =>
  thorough ? cases : cases.filter((_, index) => index % step === 0)

/** As `test`, when thorough. A file has at least one `test` beside these. */
export const thoroughTest = thorough ? test : (((): void => undefined) as unknown as typeof test)
