import type { TestProject } from 'vitest/node'
import { findCompose } from './container-engine.ts'
import { findServer, type TestServer } from './find-server.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    couchdb: TestServer
    /** The docker compose command with its first arguments, if it exists. */
    compose: string[] | undefined
  }
}

/** Starts one server for all test files. Each test creates its own databases in it. Unit tests need no server. */
export default async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  if (project.vitest.projects.every(({ name }) => name === 'unit')) return undefined
  const server = await findServer()
  console.log(`Tests run against ${server.version} (${server.kind})`)
  project.provide('couchdb', { kind: server.kind, url: server.url, version: server.version })
  project.provide('compose', await findCompose())
  return () => server.stop()
}
