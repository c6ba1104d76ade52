import { useEffect, useRef, useState } from "preact/hooks";
import type { DescribedTable } from "../api/catalog.ts";
import { type ChangeSubscription, type ChannelStatus, RealtimeClient, type ReceivedChange } from "../api/realtime.ts";
import { sessionState, viewedToken } from "../api/session.ts";
import { Button } from "../components/button.ts";
import { CodeBlock } from "../components/code-block.ts";
import { TextField } from "../components/field.ts";
import { Select } from "../components/select.ts";
import { html } from "../html.ts";
import { texts } from "../texts.ts";

type ListedChange = ReceivedChange & { readonly number: number };

const MAX_EVENTS = 200;
const EVENTS = ["*", "INSERT", "UPDATE", "DELETE"] as const;

/** Subscribes to the changes of a table and lists their events, newest first. */
export function WatchPanel({ table }: { readonly table: DescribedTable }) {
  const [event, setEvent] = useState<ChangeSubscription["event"]>("*");
  const [filter, setFilter] = useState("");
  const watch = useWatch();
  const subscription = {
    event,
    schema: table.schema,
    table: table.name,
    ...(filter.trim() && { filter: filter.trim() }),
  };
  return html`
    <div class="try-form">
      <p class="quiet">${texts.try.watchAbout}</p>
      <div class="try-address">
        <${Select}
          label=${texts.try.event}
          value=${event}
          disabled=${watch.isOn}
          options=${EVENTS.map((value) => ({ value, label: value === "*" ? texts.try.anyEvent : value }))}
          onChange=${setEvent}
        />
        <${TextField} label=${texts.try.changeFilter} hint=${texts.try.filterHint} disabled=${watch.isOn} value=${filter} onInput=${setFilter} />
      </div>
      <div class="row">
        ${
          watch.isOn
            ? html`<${Button} icon="stop" onClick=${watch.stop}>${texts.try.stop}<//>`
            : html`<${Button} kind="primary" icon="play" onClick=${() => watch.start(subscription)}>${texts.try.start}<//>`
        }
        <${Button} kind="quiet" disabled=${watch.changes.length === 0} onClick=${watch.clear}>${texts.try.clear}<//>
        <span role="status">${watch.status && statusText(watch.status)}</span>
      </div>
      <${CodeBlock} label=${texts.try.code} text=${toSubscriptionCode(subscription)} />
      <${EventList} changes=${watch.changes} />
    </div>
  `;
}

function EventList({ changes }: { readonly changes: readonly ListedChange[] }) {
  return html`
    <section class="try-response">
      <h2>${texts.try.events}</h2>
      ${changes.length === 0 && html`<p class="quiet">${texts.try.noEvents}</p>`}
      ${changes.map(({ number, ...change }) => {
        const label = texts.try.eventOf(change.type, change.commit_timestamp);
        return html`<div key=${number}><p class="quiet">${label}</p><${CodeBlock} label=${label} text=${JSON.stringify(change, null, 2)} wrap /></div>`;
      })}
    </section>
  `;
}

function useWatch() {
  const [status, setStatus] = useState<ChannelStatus | null>(null);
  const [changes, setChanges] = useState<readonly ListedChange[]>([]);
  const client = useRef<RealtimeClient | null>(null);
  const stop = () => {
    client.current?.close();
    client.current = null;
    setStatus(null);
  };
  useEffect(() => stop, []);
  useEffect(() => sessionState.subscribe(() => client.current?.renewToken()), []);
  const start = (subscription: ChangeSubscription) => {
    const address = window.location.origin.replace(/^http/, "ws");
    client.current = new RealtimeClient({ address, token: viewedToken });
    client.current.subscribe([subscription], {
      onStatus: setStatus,
      onChange: (change) =>
        setChanges((before) => [{ ...change, number: (before[0]?.number ?? 0) + 1 }, ...before].slice(0, MAX_EVENTS)),
    });
    setStatus({ state: "joining" });
  };
  return { status, changes, start, stop, clear: () => setChanges([]), isOn: status !== null };
}

function statusText(status: ChannelStatus): string {
  if (status.state === "refused") return texts.try.refused(status.reason);
  if (status.state === "interrupted") return texts.try.interrupted(status.reason);
  return texts.try[status.state];
}

function toSubscriptionCode(subscription: ChangeSubscription): string {
  return `supabase
  .channel("changes")
  .on("postgres_changes", ${JSON.stringify(subscription)}, (change) => console.log(change))
  .subscribe((status, error) => console.log(status, error));`;
}
