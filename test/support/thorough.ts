/**
 * How much a test does that has no natural end: `npm test` takes samples, `npm run test:slow` everything. What is
 * asserted is the same.
 */
const thorough = process.env.THOROUGH === '1'

/** So many of something. */
export const amount = (usual: number, whenThorough: number): number => (thorough ? whenThorough : usual)

/** The first case and each `step`-th after it; all of them when thorough. */
export const sample = <T>(cases: readonly T[], step: number): readonly T[] =>
  thorough ? cases : cases.filter((_, index) => index % step === 0)
