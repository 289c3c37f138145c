import type { HandlerSettings } from '../../ddocs/lib/live-settings.ts'
import { handlersOf } from '../databases/capabilities.ts'
import type { Listed } from '../workers/list.ts'
import { Hidden, Layout, Text, Time, type Viewer } from './layout.tsx'

interface HandlersProps {
  readonly viewer: Viewer
  readonly workers: readonly Listed[]
  readonly settings: HandlerSettings
}

/** Which handlers there are, what is set of them, and who has them. */
export const Handlers = ({ viewer, workers, settings }: HandlersProps) => {
  const names = [...new Set([...workers.flatMap((worker) => handlersOf(worker)), ...Object.keys(settings)])].sort()
  return (
    <Layout title="Handlers and workers" isLive="slowly" current="/handlers" viewer={viewer}>
      <section>
        <h2 id="handlers">Handlers</h2>
        <div class="scrolls" tabindex={0} role="region" aria-labelledby="handlers">
          <table>
            <thead>
              <tr>
                <th scope="col">Type and state</th>
                <th scope="col">Workers</th>
                <th scope="col">Set while it runs</th>
                <td></td>
              </tr>
            </thead>
            <tbody>
              {names.map((name) => {
                const setting = settings[name] ?? {}
                const having = workers.filter((worker) => handlersOf(worker).includes(name)).length
                return (
                  <tr>
                    <th scope="row">
                      <Text of={name} />
                    </th>
                    <td class="number">{having}</td>
                    <td>
                      <Text of={inWords(setting)} />
                    </td>
                    <td class="actions">
                      {viewer.mayAct && (
                        <form method="get" action="/act">
                          <Hidden values={{ handler: name }} />
                          <button name="verb" value={setting.paused ? 'resume' : 'pause'} class="quiet">
                            {setting.paused ? 'Resume' : 'Pause'}
                          </button>
                        </form>
                      )}
                    </td>
                  </tr>
                )
              })}
            </tbody>
          </table>
        </div>
      </section>
      <section>
        <h2 id="workers">Workers</h2>
        {workers.length === 0 ? (
          <p>No worker is registered.</p>
        ) : (
          <div class="scrolls" tabindex={0} role="region" aria-labelledby="workers">
            <table>
              <thead>
                <tr>
                  <th scope="col">Worker</th>
                  <th scope="col">Role</th>
                  <th scope="col">Since</th>
                  <th scope="col">Last heartbeat, by its own clock</th>
                </tr>
              </thead>
              <tbody>
                {workers.map(({ id, role, registeredAt, seenAt }) => (
                  <tr>
                    <th scope="row">
                      <Text of={id} />
                    </th>
                    <td>
                      <Text of={role} />
                    </td>
                    <td>
                      <Time at={registeredAt} />
                    </td>
                    <td>
                      <Time at={seenAt} />
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </section>
    </Layout>
  )
}

function inWords({ paused, concurrency, limit }: HandlerSettings[string]): string {
  const parts = [
    ...(paused ? ['paused'] : []),
    ...(concurrency === undefined ? [] : [`concurrency ${concurrency}`]),
    ...(limit === undefined ? [] : [`limit ${limit.count} in ${limit.per}`]),
  ]
  return parts.join(', ') || '–'
}
