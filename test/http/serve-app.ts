import type { Hono } from 'hono'
import { onTestFinished } from 'vitest'
import { listen, type ListenOptions, type Listening } from '../../sidecar/http/listen.ts'

/** Serves an application on a free port until the end of the test. */
export async function serveApp(app: Hono, options: Partial<ListenOptions> = {}): Promise<Listening> {
  const listening = await listen({ host: '127.0.0.1', port: 0, ...options })
  listening.serve(app)
  onTestFinished(() => listening.close())
  return listening
}
