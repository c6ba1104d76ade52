import { useEffect, useRef, useState } from "preact/hooks";
import { type ChannelStatus, type JoinedChannel, RealtimeClient } from "../../api/realtime.ts";
import { sessionState, viewedToken } from "../../api/session.ts";
import { Button } from "../../components/button.ts";
import { CodeBlock } from "../../components/code-block.ts";
import { Checkbox, TextArea, TextField } from "../../components/field.ts";
import { PageHeader } from "../../components/page.ts";
import { PlainTable } from "../../components/plain-table.ts";
import { html } from "../../html.ts";
import { pathTo } from "../../router.ts";
import { isJsonObject } from "../../stored-json.ts";
import { formatTime } from "../../texts/format.ts";
import { texts } from "../../texts.ts";
import { applyPresence, type PresenceDiff, type PresenceState, presenceState, toChannelCode } from "./channel-state.ts";

const words = texts.running.channel;
const MAX_MESSAGES = 200;

type ChannelMessage = {
  readonly number: number;
  readonly at: string;
  readonly kind: string;
  readonly payload: unknown;
};

/** The broadcasts and presence of a channel, as its clients see and send them. */
export function ChannelPage() {
  const [name, setName] = useState("room");
  const [isPrivate, setPrivate] = useState(false);
  const channel = useChannel();
  const join = () => channel.join(name.trim(), isPrivate);
  return html`
    <${PageHeader} title=${words.title}>
      <a class="button" href=${pathTo("running")}>${words.back}</a>
    <//>
    <div class="page-body stack running-channel">
      <p class="quiet">${words.about}</p>
      <${TextField} label=${words.name} hint=${words.nameHint} value=${name} disabled=${channel.isOn} onInput=${setName} />
      <${Checkbox} label=${words.private} checked=${isPrivate} disabled=${channel.isOn} onChange=${setPrivate} />
      <div class="row">
        ${
          channel.isOn
            ? html`<${Button} icon="stop" onClick=${channel.leave}>${words.leave}<//>`
            : html`<${Button} kind="primary" icon="play" disabled=${name.trim() === ""} onClick=${join}>${words.join}<//>`
        }
        <span role="status">${channel.status && statusText(channel.status)}</span>
      </div>
      <${SendForm} isJoined=${channel.status?.state === "joined"} send=${channel.send} />
      <${CodeBlock} label=${words.code} text=${toChannelCode(name.trim(), isPrivate)} />
      <${Presence} state=${channel.presence} />
      <${Messages} messages=${channel.messages} />
    </div>
  `;
}

type SendFormProps = { readonly isJoined: boolean; readonly send: JoinedChannel["send"] };

function SendForm({ isJoined, send }: SendFormProps) {
  const [event, setEvent] = useState("message");
  const [text, setText] = useState('{"text": "Hello"}');
  const payload = parseObject(text);
  const isReady = isJoined && payload !== null;
  const broadcast = () => send("broadcast", { type: "broadcast", event: event.trim(), payload });
  const track = () => send("presence", { type: "presence", event: "track", payload });
  const untrack = () => send("presence", { type: "presence", event: "untrack" });
  return html`
    <${TextField} label=${words.event} value=${event} onInput=${setEvent} />
    <${TextArea} label=${words.payload} rows=${2} value=${text} error=${payload ? null : words.payloadInvalid} onInput=${setText} />
    <div class="row">
      <${Button} disabled=${!isReady || event.trim() === ""} onClick=${broadcast}>${words.send}<//>
      <${Button} disabled=${!isReady} onClick=${track}>${words.track}<//>
      <${Button} disabled=${!isJoined} onClick=${untrack}>${words.untrack}<//>
    </div>
  `;
}

function parseObject(text: string): object | null {
  try {
    const value: unknown = JSON.parse(text);
    return isJsonObject(value) ? value : null;
  } catch {
    return null;
  }
}

function Presence({ state }: { readonly state: PresenceState }) {
  const rows = Object.entries(state).flatMap(([key, metas]) =>
    metas.map(({ phx_ref: ref, ...meta }) => ({
      key: `${key} ${ref}`,
      cells: [html`<code>${key}</code>`, html`<code>${JSON.stringify(meta)}</code>`],
    })),
  );
  return html`
    <section class="stack" aria-label=${words.presence}>
      <h2>${words.presence}</h2>
      ${rows.length === 0 ? html`<p class="quiet">${words.nobody}</p>` : html`<${PlainTable} label=${words.presence} heads=${[words.key, words.state]} rows=${rows} />`}
    </section>
  `;
}

function Messages({ messages }: { readonly messages: readonly ChannelMessage[] }) {
  return html`
    <section class="stack" aria-label=${words.messages}>
      <h2>${words.messages}</h2>
      ${messages.length === 0 && html`<p class="quiet">${words.noMessages}</p>`}
      ${messages.map(({ number, at, kind, payload }) => {
        const label = words.messageOf(kind, formatTime(at));
        return html`<div key=${number}><p class="quiet">${label}</p><${CodeBlock} label=${label} text=${JSON.stringify(payload, null, 2)} wrap /></div>`;
      })}
    </section>
  `;
}

function useChannel() {
  const [status, setStatus] = useState<ChannelStatus | null>(null);
  const [messages, setMessages] = useState<readonly ChannelMessage[]>([]);
  const [presence, setPresence] = useState<PresenceState>({});
  const client = useRef<RealtimeClient | null>(null);
  const joined = useRef<JoinedChannel | null>(null);
  const leave = () => {
    joined.current?.leave();
    client.current?.close();
    [joined.current, client.current] = [null, null];
    setStatus(null);
    setPresence({});
  };
  useEffect(() => leave, []);
  useEffect(() => sessionState.subscribe(() => client.current?.renewToken()), []);
  const receive = (event: string, payload: unknown) => {
    if (event === "presence_state") setPresence(presenceState(payload));
    else if (event === "presence_diff") setPresence((before) => applyPresence(before, payload as PresenceDiff));
    else if (event !== "broadcast") return;
    const add = (before: readonly ChannelMessage[]) => {
      const message = { number: (before[0]?.number ?? 0) + 1, at: new Date().toISOString(), kind: event, payload };
      return [message, ...before].slice(0, MAX_MESSAGES);
    };
    setMessages(add);
  };
  const join = (name: string, isPrivate: boolean) => {
    const address = window.location.origin.replace(/^http/, "ws");
    client.current = new RealtimeClient({ address, token: viewedToken });
    const config = { private: isPrivate, broadcast: { self: true }, presence: { enabled: true } };
    joined.current = client.current.joinChannel(name, config, { onStatus: setStatus, onMessage: receive });
    setStatus({ state: "joining" });
  };
  const send: JoinedChannel["send"] = (event, payload) => joined.current?.send(event, payload);
  return { status, messages, presence, join, leave, send, isOn: status !== null };
}

function statusText(status: ChannelStatus): string {
  if (status.state === "joined") return words.joined;
  if (status.state === "refused") return words.refused(status.reason);
  return status.state === "joining" ? words.joining : words.interrupted(status.reason);
}
