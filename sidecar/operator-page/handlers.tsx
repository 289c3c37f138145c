import type { HandlerSetting, HandlerSettings } from '../../ddocs/lib/live-settings.ts'
import { handlersOf, ownHandlersOf } from '../databases/capabilities.ts'
import { BY_DEFAULT, limitInWords } from '../databases/change-handlers.ts'
import { settingInWords } from '../databases/handler-settings.ts'
import type { Listed } from '../workers/list-workers.ts'
import { Hidden, Layout, Table, Text, type Viewer } from './layout.tsx'
import type { Lines } from './series.ts'
import { Workers } from './workers.tsx'

interface CommonProps {
  readonly viewer: Viewer
  readonly workers: readonly Listed[]
  readonly settings: HandlerSettings
}

interface HandlersProps extends CommonProps {
  /** Lines that the workers have sent, by worker id. */
  readonly lines: ReadonlyMap<string, Lines>
}

/** Shows the handlers with their settings, and the workers that have them. */
export const Handlers = ({ viewer, workers, settings, lines }: HandlersProps) => {
  const all = [...new Set([...workers.flatMap((worker) => handlersOf(worker)), ...Object.keys(settings)])].sort()
  const own = new Set(workers.flatMap((worker) => ownHandlersOf(worker)))
  const sidecars = all.filter((name) => !own.has(name))
  return (
    <Layout title="Handlers and workers" isLive="slowly" current="/handlers" viewer={viewer}>
      <section>
        <h2 id="handlers">Your handlers</h2>
        {own.size === 0 ? (
          <p>No running worker has a handler of yours.</p>
        ) : (
          <HandlerTable
            {...{ viewer, workers, settings }}
            label="Your handlers"
            names={all.filter((name) => own.has(name))}
          />
        )}
        <details open={own.size === 0}>
          <summary>{`Handlers of the sidecar itself: ${sidecars.length}`}</summary>
          <HandlerTable {...{ viewer, workers, settings }} label="Handlers of the sidecar itself" names={sidecars} />
        </details>
      </section>
      <Workers {...{ workers, lines }} />
    </Layout>
  )
}

interface HandlerTableProps extends CommonProps {
  readonly label: string
  readonly names: readonly string[]
}

const HandlerTable = ({ viewer, workers, settings, label, names }: HandlerTableProps) => (
  <Table label={label} columns={['Type and state', 'Workers', 'Live settings', '']}>
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
