/// <reference types="vite/types/importMeta.d.ts" />
/** Runs every `*.cluster.test.ts`. As one file they share one worker process, so one cluster runs at a time. */
import { afterAll, beforeAll, beforeEach, describe } from 'vitest'
import { findPortMapper, renewCluster, sharedCluster, stopSharedCluster } from './support/couchdb-cluster.ts'

if (findPortMapper() !== undefined) {
  beforeAll(sharedCluster)
  beforeEach(renewCluster)
  afterAll(stopSharedCluster)
}

for (const [file, load] of Object.entries(import.meta.glob('./**/*.cluster.test.ts')))
  describe(file, load as () => Promise<void>)
