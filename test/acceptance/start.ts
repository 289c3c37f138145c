/**
 * The sidecar as users run it: a program with nothing but settings. Tests observe only what it writes
 * to its output, to CouchDB, or into a mail. It runs in the tests' process: the same program at a fraction of the
 * processor time. It runs as its own process where a test needs that (`process.ts`), and for all tests if
 * `SIDECAR_AS=process` or `TEST_IMAGE` (the image of a container) is set.
 */
import { launchInProcess, runInProcess } from './in-process.ts'
import { launchProcess, runProcess } from './process.ts'
import { endWithTest, type Ended, type Settings, type Sidecar } from './sidecar.ts'

const asProcess = (): boolean => process.env.SIDECAR_AS === 'process' || !!process.env.TEST_IMAGE

/** Starts a sidecar and waits until it is up. The caller must end it. */
export const launchSidecar = (settings: Settings): Promise<Sidecar> =>
  (asProcess() ? launchProcess : launchInProcess)(settings)

/** Like `launchSidecar`, but it ends with the test. */
export const startSidecar = (settings: Settings): Promise<Sidecar> => endWithTest(launchSidecar(settings))

/** Runs a command to its end. */
export const runCommand = (args: readonly string[], settings: Settings = {}): Promise<Ended> =>
  (asProcess() ? runProcess : runInProcess)(args, settings)
