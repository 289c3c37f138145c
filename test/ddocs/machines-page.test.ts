import { resolveConfig, format } from 'prettier'
import { expect, test } from 'vitest'
import { controlMachines } from '../../ddocs/machines.ts'
import { renderMachines } from '../../sidecar/deploy/render-machines.ts'

const page = new URL('../../docs/machines.md', import.meta.url).pathname

/** `npm run docs:machines` runs this with `--update`. */
test('docs/machines.md shows the machines as they are', async () => {
  const text = await format(renderMachines(controlMachines), { ...(await resolveConfig(page)), filepath: page })
  await expect(text).toMatchFileSnapshot(page)
})

test('a page has a diagram and a table for each type', () => {
  const text = renderMachines({
    order: {
      paid: {
        mode: 'unsafe',
        create: 'client',
        next: { done: 'sidecar', late: 'sidecar' },
        timeout: { afterMs: 7_200_000, next: 'late' },
      },
      done: {},
      late: { next: { paid: 'owner' } },
    },
  })
  expect(text).toContain(`stateDiagram-v2
  [*] --> paid: client
  paid: paid (unsafe)
  paid --> done: sidecar
  paid --> late: after 2 h
  done --> [*]
  late --> paid: owner
`)
  expect(text).toContain(`| (nothing) | paid | client |
| paid | done | sidecar |
| paid | late | sidecar, after 2 h |
| late | paid | owner |
`)
})
