import { resolveConfig, format } from 'prettier'
import { expect, test } from 'vitest'
import type { State } from '../../ddocs/machine.ts'
import { controlMachines, userMachines } from '../../ddocs/machines.ts'
import { renderMachines } from '../../tools/render-machines.ts'

const page = new URL('../../docs/machines.md', import.meta.url).pathname

/** `npm run docs:machines` runs this test with `--update`. */
test('docs/machines.md matches the machines in the code', async () => {
  const text = await format(
    renderMachines({ 'the control database': controlMachines, "a user's control database": userMachines }),
    { ...(await resolveConfig(page)), filepath: page },
  )
  await expect(text).toMatchFileSnapshot(page)
})

test('a page has a diagram for each type', () => {
  const paid: State = {
    ...{ mode: 'unsafe', create: 'client', next: { done: 'sidecar', late: 'sidecar' } },
    timeout: { afterMs: 7_200_000, next: 'late' },
  }
  const text = renderMachines({ 'a shop': { order: { paid, done: {}, late: { next: { paid: 'owner' } } } } })
  expect(text).toContain('## In a shop\n\n### order\n')
  expect(text).toContain(`stateDiagram-v2
  [*] --> paid: client
  paid: paid (unsafe)
  paid --> done: sidecar
  paid --> late: after 2 hours
  done --> [*]
  late --> paid: owner
`)
})
