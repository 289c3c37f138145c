import { expect, test } from 'vitest'
import { untraced } from '../../sidecar/docstate/traces.ts'
import { loadTracing } from '../../sidecar/tracing/tracing.ts'

test('without a tracer in the process, tracing is off, and the parts of the engine are not wrapped', async () => {
  expect(await loadTracing()).toBeUndefined()
  for (const trace of Object.values(untraced) as ((part: object) => object)[]) {
    const part = {}
    expect(trace(part)).toBe(part)
  }
})
