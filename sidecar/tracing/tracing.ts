import type * as Api from '@opentelemetry/api'
import type { Attributes, Context, Span, SpanKind } from '@opentelemetry/api'
import type { Logger } from 'pino'
import { failureOf } from '../core/failure.ts'

/**
 * Spans by OpenTelemetry, if a tracer was registered before the sidecar started (docs/tracing.md). Without a tracer, no
 * part of the API is loaded or called.
 */
export interface Tracing {
  /** Begins a span: a child of `parent`, or of the active span. */
  begin(name: string, options?: SpanOptions): Trace
  /** Writes the active span into the headers of a request. */
  inject(headers: Record<string, string>): void
  /** Flushes ended spans; waits at most five seconds. */
  close(): Promise<void>
}

export interface SpanOptions {
  readonly attributes?: Attributes
  readonly kind?: keyof typeof SpanKind
  /** `undefined` starts a new trace. Default: the active span. */
  readonly parent?: Trace | undefined
}

/** A span that has begun. */
export interface Trace {
  readonly context: Context
  /** Runs the work with this span active. */
  run<T>(work: () => T): T
  set(attributes: Attributes): void
  /** @param failed the failure, if the work failed */
  end(failed?: { readonly code: string; readonly reason: string; readonly stack?: string | undefined }): void
}

/** Key under which all copies of the API keep registered tracers (`@opentelemetry/api`, `internal/global-utils`). */
const REGISTERED = Symbol.for('opentelemetry.js.api.1')
const PACKAGE: string = '@opentelemetry/api'
const FLUSH_MS = 5000

/** @returns undefined if no tracer is registered, or the API is not installed beside the sidecar */
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
      await Promise.race([flushed, late]).catch(() => undefined) // the exporter reports its own errors
      clearTimeout(timer)
    },
  }
}

interface Flushable {
  readonly forceFlush?: () => Promise<void>
}
