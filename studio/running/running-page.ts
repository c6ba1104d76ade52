import { useEffect } from "preact/hooks";
import { isAborted } from "../api/http.ts";
import { Button } from "../components/button.ts";
import { Notice } from "../components/notice.ts";
import { Loading, PageHeader } from "../components/page.ts";
import { html } from "../html.ts";
import { pathTo, useSegments } from "../router.ts";
import { makeStore, useStore } from "../store.ts";
import { formatTime } from "../texts/format.ts";
import { texts } from "../texts.ts";
import { ChannelPage } from "./channel/channel-page.ts";
import { DatabaseSections } from "./database-sections.ts";
import { readRunning } from "./running-api.ts";
import { RunningCharts } from "./running-charts.ts";
import { addState, lastInterval, NO_HISTORY, type RunningHistory } from "./running-history.ts";
import { ServiceSections } from "./service-sections.ts";

const POLL_MS = 2_000;
const CHANNEL = "channel";

type Polling = { readonly history: RunningHistory; readonly error: Error | null; readonly isPaused: boolean };

/** The state of polling, kept while other pages are shown. */
const polling = makeStore<Polling>({ history: NO_HISTORY, error: null, isPaused: false });

async function poll(signal: AbortSignal): Promise<void> {
  const { history } = polling.get();
  try {
    const state = await readRunning(lastInterval(history), signal);
    polling.set({ ...polling.get(), history: addState(history, state), error: null });
  } catch (error) {
    if (!isAborted(error)) polling.set({ ...polling.get(), error: error as Error });
  }
}

/** Polls every two seconds while the page is visible. */
function usePolling(isPaused: boolean): void {
  useEffect(() => {
    if (isPaused) return undefined;
    const controller = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const repeat = async () => {
      if (!document.hidden) await poll(controller.signal);
      if (!controller.signal.aborted) timer = setTimeout(repeat, POLL_MS);
    };
    void repeat();
    return () => {
      controller.abort();
      clearTimeout(timer);
    };
  }, [isPaused]);
}

/** `/studio/running`, `/studio/running/channel`. */
export function RunningPage() {
  const [, view] = useSegments();
  return view === CHANNEL ? html`<${ChannelPage} />` : html`<${CurrentState} />`;
}

function CurrentState() {
  const { history, error, isPaused } = useStore(polling);
  usePolling(isPaused);
  const { latest } = history;
  const pollNow = () => void poll(new AbortController().signal);
  const pause = () => polling.set({ ...polling.get(), isPaused: !isPaused });
  return html`
    <${PageHeader} title=${texts.running.title}>
      <span class="quiet">${latest && texts.running.updated(formatTime(latest.at))}</span>
      <a class="button" href=${pathTo("running", CHANNEL)}>${texts.running.channel.link}</a>
      <${Button} icon=${isPaused ? "play" : "stop"} pressed=${isPaused} onClick=${pause}>${texts.running.pause}<//>
    <//>
    <div class="page-body running">
      ${error && html`<${Notice} kind="error" title=${texts.running.failed} error=${error} />`}
      ${!latest && !error && html`<${Loading} />`}
      ${
        latest &&
        html`
          <${RunningCharts} history=${history} latest=${latest} />
          <${DatabaseSections} state=${latest} onChange=${pollNow} />
          <${ServiceSections} history=${history} state=${latest} onChange=${pollNow} />
        `
      }
    </div>
  `;
}
