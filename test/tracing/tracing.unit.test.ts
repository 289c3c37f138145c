import { expect, test } from 'vitest'
import { untraced } from '../../sidecar/docstate/traces.ts'
import { loadTracing } from '../../sidecar/tracing/tracing.ts'

test('without a tracer in the process there is no tracing, and the parts of the engine are what they were', async () => {
  expect(await loadTracing()).toBeUndefined()
  for (const trace of Object.values(untraced) as ((part: object) => object)[]) {
    const part = {}
    expect(trace(part)).toBe(part)
  }
})
