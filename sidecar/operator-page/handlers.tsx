import type { HandlerSetting, HandlerSettings } from '../../ddocs/lib/live-settings.ts'
import { handlersOf, ownHandlersOf } from '../databases/capabilities.ts'
import { BY_DEFAULT, limitInWords } from '../databases/change-handlers.ts'
import { settingInWords } from '../databases/handler-settings.ts'
import type { Listed } from '../workers/list-workers.ts'
import { Hidden, Layout, Table, Text, Time, type Viewer } from './layout.tsx'

interface HandlersProps {
  readonly viewer: Viewer
  readonly workers: readonly Listed[]
  readonly settings: HandlerSettings
}

/** Which handlers there are, what is set of them, and who has them. */
export const Handlers = ({ viewer, workers, settings }: HandlersProps) => {
  const all = [...new Set([...workers.flatMap((worker) => handlersOf(worker)), ...Object.keys(settings)])].sort()
  const own = new Set(workers.flatMap((worker) => ownHandlersOf(worker)))
  const sidecars = all.filter((name) => !own.has(name))
  return (
    <Layout title="Handlers and workers" isLive="slowly" current="/handlers" viewer={viewer}>
      <section>
        <h2 id="handlers">Your handlers</h2>
        {own.size === 0 ? (
          <p>No running worker has any.</p>
        ) : (
          <HandlerTable
            {...{ viewer, workers, settings }}
            label="Your handlers"
            names={all.filter((name) => own.has(name))}
          />
        )}
        <details open={own.size === 0}>
          <summary>{`The sidecar's own: ${sidecars.length}`}</summary>
          <HandlerTable {...{ viewer, workers, settings }} label="The sidecar's own handlers" names={sidecars} />
        </details>
      </section>
      <section>
        <h2 id="workers">Workers</h2>
        {workers.length === 0 ? (
          <p>No worker is registered.</p>
        ) : (
          <Table labelledby="workers" columns={['Worker', 'Role', 'Since', 'Last heartbeat, by its own clock']}>
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
          </Table>
        )}
      </section>
    </Layout>
  )
}

interface HandlerTableProps extends HandlersProps {
  readonly label: string
  readonly names: readonly string[]
}

const HandlerTable = ({ viewer, workers, settings, label, names }: HandlerTableProps) => (
  <Table label={label} columns={['Type and state', 'Workers', 'Set while it runs', '']}>
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
            <Text of={settingInWords(setting)} />
          </td>
          <td class="actions">{viewer.mayAct && <HandlerForm name={name} setting={setting} />}</td>
        </tr>
      )
    })}
  </Table>
)

const HandlerForm = ({ name, setting }: { readonly name: string; readonly setting: HandlerSetting }) => (
  <form method="get" action="/act">
    <Hidden values={{ handler: name }} />
    <button name="verb" value={setting.paused ? 'resume' : 'pause'} class="quiet">
      {setting.paused ? 'Resume' : 'Pause'}
    </button>
    <label>
      Concurrency
      <input name="concurrency" size={6} value={String(setting.concurrency ?? BY_DEFAULT)} />
    </label>
    <label>
      Limit
      <input name="limit" size={8} value={limitInWords(setting)} />
    </label>
    <button name="verb" value="set" class="quiet">
      Set
    </button>
  </form>
)
