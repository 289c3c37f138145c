import type { TestProject } from 'vitest/node'
import { findCompose } from './container-engine.ts'
import { findServer, type TestServer } from './find-server.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    couchdb: TestServer
    /** The command with its first arguments, where there is one. */
    compose: string[] | undefined
  }
}

/** One server for all test files; every test makes its own databases in it. Unit tests alone need none. */
export default async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  if (project.vitest.projects.every(({ name }) => name === 'unit')) return undefined
  const server = await findServer()
  console.log(`Tests run against ${server.version} (${server.kind})`)
  project.provide('couchdb', { kind: server.kind, url: server.url, version: server.version })
  project.provide('compose', await findCompose())
  return () => server.stop()
}
