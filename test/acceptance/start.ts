/**
 * The sidecar as people run it: a program that knows nothing but its settings. What the tests learn of it, it has written
 * to its output, to CouchDB, or into a mail. It runs in the tests' process, which is the same program at a fraction of the
 * processor time; as a process of its own where a test needs that (`process.ts`), and for all tests where `SIDECAR_AS=process` or
 * `TEST_IMAGE`, the image of a container to run, is set.
 */
import { launchInProcess, runInProcess } from './in-process.ts'
import { launchProcess, runProcess } from './process.ts'
import { endWithTest, type Ended, type Settings, type Sidecar } from './sidecar.ts'

const asProcess = (): boolean => process.env.SIDECAR_AS === 'process' || !!process.env.TEST_IMAGE

/** Starts it, and waits until it is up; for all tests of a file, which has to end it. */
export const launchSidecar = (settings: Settings): Promise<Sidecar> =>
  (asProcess() ? launchProcess : launchInProcess)(settings)

/** As `launchSidecar`. It ends with the test. */
export const startSidecar = (settings: Settings): Promise<Sidecar> => endWithTest(launchSidecar(settings))

/** Runs one command to its end. */
export const runCommand = (args: readonly string[], settings: Settings = {}): Promise<Ended> =>
  (asProcess() ? runProcess : runInProcess)(args, settings)
