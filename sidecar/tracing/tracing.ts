import type * as Api from '@opentelemetry/api'
import type { Attributes, Context, Span, SpanKind } from '@opentelemetry/api'
import type { Logger } from 'pino'
import { failureOf } from '../core/failure.ts'

/**
 * Spans by OpenTelemetry, where the process has a tracer: one that was registered before the sidecar started
 * (docs/tracing.md). Without one nothing here is loaded, and nothing of it is called.
 */
export interface Tracing {
  /** Begins a span: a child of `parent`, or of what is active. */
  begin(name: string, options?: SpanOptions): Trace
  /** Writes into headers to what span a request belongs: the one that is active now. */
  inject(headers: Record<string, string>): void
  /** Hands over what has ended. Waits for it for five seconds. */
  close(): Promise<void>
}

export interface SpanOptions {
  readonly attributes?: Attributes
  readonly kind?: keyof typeof SpanKind
  /** `undefined` makes a trace of its own. Default what is active. */
  readonly parent?: Trace | undefined
}

/** A span that has begun. */
export interface Trace {
  readonly context: Context
  /** Runs the work while the span is active. */
  run<T>(work: () => T): T
  set(attributes: Attributes): void
  /** @param failed why, where it has */
  end(failed?: { readonly code: string; readonly reason: string; readonly stack?: string | undefined }): void
}

/** Where the API keeps what was registered, in any copy of it (`@opentelemetry/api`, `internal/global-utils`). */
const REGISTERED = Symbol.for('opentelemetry.js.api.1')
const PACKAGE: string = '@opentelemetry/api'
const FLUSH_MS = 5000

/** @returns undefined where no tracer is registered, or the API is not installed beside the sidecar */
export async function loadTracing(log?: Logger): Promise<Tracing | undefined> {
  const registered = (globalThis as { [REGISTERED]?: { readonly trace?: unknown } })[REGISTERED]
  if (!registered?.trace) return undefined
  try {
    return createTracing((await import(PACKAGE)) as typeof Api)
  } catch (thrown) {
    const { reason } = failureOf(thrown)
    log?.warn({ reason }, `a tracer is registered, but no spans are made: npm install ${PACKAGE} beside the sidecar`)
    return undefined
  }
}

function createTracing(api: typeof Api): Tracing {
  const { context, propagation, SpanKind, SpanStatusCode, trace } = api
  const tracer = trace.getTracer('couchdb-sidecar')

  function traceOf(span: Span, within: Context): Trace {
    const own = trace.setSpan(within, span)
    return {
      context: own,
      run: (work) => context.with(own, work),
      set: (attributes) => void span.setAttributes(attributes),
      end(failed) {
        if (failed) {
          const { code, reason, stack } = failed
          span.recordException({ name: code, message: reason, ...(stack !== undefined && { stack }) })
          span.setStatus({ code: SpanStatusCode.ERROR, message: `${code}: ${reason}` })
        }
        span.end()
      },
    }
  }

  return {
    begin(name, options = {}) {
      const { attributes = {}, kind = 'INTERNAL' } = options
      const root = 'parent' in options && options.parent === undefined
      const within = root ? api.ROOT_CONTEXT : (options.parent?.context ?? context.active())
      return traceOf(tracer.startSpan(name, { attributes, kind: SpanKind[kind] }, within), within)
    },
    inject: (headers) => propagation.inject(context.active(), headers),
    async close() {
      const provider = trace.getTracerProvider() as Flushable & { getDelegate?: () => Flushable }
      const flushed = (provider.getDelegate?.() ?? provider).forceFlush?.()
      let timer: NodeJS.Timeout | undefined
      const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, FLUSH_MS)))
      await Promise.race([flushed, late]).catch(() => undefined) // its exporter tells, if it is to be told
      clearTimeout(timer)
    },
  }
}

interface Flushable {
  readonly forceFlush?: () => Promise<void>
}
