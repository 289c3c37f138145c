/** esbuild keeps a process for the next build. That process must not outlive a deploy. */
import { expect, onTestFinished, test, vi } from 'vitest'
import { deploy } from '../deploy/app.ts'
import { ddocFolder } from '../deploy/folder.ts'
import { createTestCouch, freshDb, needs, uniqueName } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { processesWith, unreaped } from '../support/processes.ts'
import { createControl } from './control.ts'
import { runProcess } from './process.ts'
import { settingsOf } from './registration.ts'

test.each(['js', 'ts'])('a deploy on the command line leaves no process behind (handlers.%s)', async (extension) => {
  needs('process table')
  const [control, mark] = [await createControl(), uniqueName('mark')]
  const module = `export default { machines: {}, register() {} }`
  const handlers = `${ddocFolder({ [`handlers.${extension}`]: module, 'package.json': '{"type":"module"}' })}/handlers`
  const settings = settingsOf(control, { SIDECAR_HANDLERS: `${handlers}.${extension}`, MARK: mark })
  const running = runProcess(['deploy'], settings)
  await eventually(() => expect(processesWith(mark).join()).toContain('esbuild')) // otherwise the test proves nothing
  expect(await running).toMatchObject({ code: 0, stderr: '' })
  await eventually(() => expect(processesWith(mark)).toEqual([]))
})

test.each([
  ['that ends well', 'export default () => true', 'fulfilled'],
  ['that is refused', 'export default () => console', 'rejected'],
])('a deploy %s leaves no process behind in a program that keeps running', async (_, filter, end) => {
  needs('process table')
  const [mark, before] = [uniqueName('mark'), unreaped()] // loading TypeScript handlers in this process leaves one
  vi.stubEnv('MARK', mark)
  onTestFinished(() => void vi.unstubAllEnvs())
  const [db, couch] = [await freshDb('processes'), createTestCouch()]
  // Enough files that esbuild runs long enough to be seen.
  const many = Array.from({ length: 100 }, (_, i) => [`app/filters/f${i}.js`, filter])
  const folder = ddocFolder(Object.fromEntries(many) as Record<string, string>)
  const deploying = Promise.allSettled([1, 2].map(() => deploy(couch, db.name, folder)))
  await eventually(() => expect(processesWith(mark).join()).toContain('esbuild'))
  expect((await deploying).map(({ status }) => status)).toEqual([end, end])
  await eventually(() =>
    expect([...processesWith(mark), ...unreaped().filter((pid) => !before.includes(pid))]).toEqual([]),
  )
})
