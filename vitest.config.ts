import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * Tests are sorted by what they need, which their names say: `x.unit.test.ts` needs nothing, `x.test.ts` a CouchDB,
 * and so on (docs/testing.md). What a cluster or a browser is needed for is one file, which imports the others.
 */
const needs = {
  cluster: ['test/cluster.test.ts'],
  browser: ['test/browser.test.ts'],
  process: ['test/**/*.process.test.ts'],
  couch: ['test/**/*.test.ts'],
  unit: ['test/**/*.unit.test.ts'],
  slow: ['test/**/*.slow.test.ts'],
}
/** Compiles the program, for those who run it as a process. */
const BUILD = 'test/acceptance/build.ts'

/** They do more in `test:slow`. */
const sampled = readdirSync('test', { encoding: 'utf8', recursive: true })
  .map((name) => join('test', name))
  .filter((file) => file.endsWith('.test.ts') && readFileSync(file, 'utf8').includes('/thorough.ts'))

const { couch, ...others } = needs
const parts = ['test/**/*.cluster.test.ts', 'test/**/*.browser.test.ts']

const project = (name: string, test: NonNullable<TestProjectInlineConfiguration['test']>) =>
  ({
    test: {
      name,
      // Processes, not threads: the leak guard looks at what keeps the whole process alive.
      pool: 'forks',
      isolate: false, // the files of a worker process share its modules
      setupFiles: 'test/support/leak-guard.ts',
      testTimeout: 300_000,
      hookTimeout: 300_000,
      ...test,
    },
  }) satisfies TestProjectInlineConfiguration

/** Long files first, one project after the other: a worker process that goes on in its project keeps its modules. */
class InOrder extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ project }: TestSpecification) => Object.keys(needs).indexOf(project.name)
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b))
  }
}

export default defineConfig({
  test: {
    sequence: { sequencer: InOrder },
    globalSetup: 'test/support/global-setup.ts',
    maxWorkers: 6, // more than there are cores: a test waits as long as it works
    projects: [
      project('cluster', { include: needs.cluster }),
      project('browser', { include: needs.browser, globalSetup: BUILD }),
      project('process', { include: needs.process, exclude: parts, globalSetup: BUILD }),
      project('couch', { include: couch, exclude: [...Object.values(others).flat(), ...parts] }),
      project('unit', { include: needs.unit }),
      project('slow', {
        include: [...needs.slow, ...needs.cluster, ...needs.browser, ...sampled, 'test/acceptance/**/*.test.ts'],
        exclude: parts,
        env: { THOROUGH: '1', SIDECAR_AS: 'process' },
        globalSetup: BUILD,
        isolate: true, // two of them import the same files: each must run them
        fileParallelism: false,
        sequence: { groupOrder: 1 },
      }),
    ],
  },
})
