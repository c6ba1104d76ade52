import { useState } from "preact/hooks";
import { whyOfUser } from "../access/access-api.ts";
import { useLoaded } from "../api/use-loaded.ts";
import { Button } from "../components/button.ts";
import { CodeBlock } from "../components/code-block.ts";
import { Menu, type MenuItem } from "../components/menu.ts";
import { Notice } from "../components/notice.ts";
import { Loading } from "../components/page.ts";
import { PlainTable, Section } from "../components/plain-table.ts";
import { showToast } from "../components/toast.ts";
import { html } from "../html.ts";
import { pathTo } from "../router.ts";
import { formatTime } from "../texts/format.ts";
import { texts } from "../texts.ts";
import {
  endSession,
  type FactorKind,
  listFactors,
  listSessions,
  readUser,
  readUserKeys,
  removeFactor,
  type User,
} from "./people-api.ts";
import { type UserAction, UserActionDialog, userActions } from "./user-actions.ts";
import { labelOf, UserBadges } from "./users-tab.ts";

type UserProps = { readonly id: string };

/** A user, with the actions that change it. */
export function UserView({ id }: UserProps) {
  const { value: user, error, reload } = useLoaded((signal) => readUser(id, signal), [id]);
  const [action, setAction] = useState<UserAction | null>(null);
  const [round, setRound] = useState(0);
  const done = () => {
    reload();
    setRound((last) => last + 1);
  };
  const items = (actions: readonly UserAction[]): MenuItem[] =>
    actions.map((each) => ({ label: texts.people.actions[each], onSelect: () => setAction(each) }));
  return html`
    <p><a href=${pathTo("people", "users")}>${texts.people.allUsers}</a></p>
    ${error && html`<${Notice} kind="error" error=${error} onRetry=${reload} />`}
    ${!user && !error && html`<${Loading} />`}
    ${
      user &&
      html`
        <div class="row">
          <h2>${labelOf(user)}</h2>
          <${UserBadges} user=${user} />
        </div>
        <div class="user-actions">
          <${Menu} label=${texts.people.userActions} icon="more" items=${items(userActions(user))}>${texts.people.userActions}<//>
          <a class="button" href=${whyOfUser(user.id)}>${texts.people.whatIsSeen}</a>
          <${Button} kind="danger" onClick=${() => setAction("delete")}>${texts.people.actions.delete}<//>
        </div>
        <${Facts} user=${user} />
        <${Sessions} id=${id} round=${round} />
        <${Factors} id=${id} kind="factors" round=${round} />
        <${Factors} id=${id} kind="passkeys" round=${round} />
        <${Identities} user=${user} />
        <${Metadata} user=${user} />
        ${action && html`<${UserActionDialog} user=${user} action=${action} onClose=${() => setAction(null)} onDone=${done} />`}
      `
    }
  `;
}

function Facts({ user }: { readonly user: User }) {
  const { value: keys = null } = useLoaded((signal) => readUserKeys([user.id], signal), [user.id]);
  const { facts } = texts.people;
  const time = (value: string | undefined) => (value ? formatTime(value) : texts.people.never);
  const rows: readonly (readonly [string, unknown])[] = [
    [facts.id, html`<code>${user.id}</code>`],
    [facts.key, html`<code>${keys?.[user.id] ?? ""}</code>`],
    [facts.role, user.role],
    [facts.phone, user.phone || "–"],
    [facts.created, time(user.created_at)],
    [facts.confirmed, time(user.email_confirmed_at)],
    [facts.lastSignIn, time(user.last_sign_in_at)],
  ];
  return html`
    <dl class="facts">
      ${rows.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}
    </dl>
  `;
}

type RoundProps = UserProps & { readonly round: number };

function Sessions({ id, round }: RoundProps) {
  const { value = null, error, reload } = useLoaded((signal) => listSessions(id, signal), [id, round]);
  const { kind, signedIn, lastUsed, address, client } = texts.people.columns;
  const end = (session: string) => attempt(() => endSession(session), reload);
  const rows = (value ?? []).map((session) => ({
    key: session.id,
    cells: [
      texts.people.sessionKinds[session.kind],
      formatTime(session.signed_in_at),
      formatTime(session.last_used_at),
      session.address ?? "",
      session.user_agent ?? "",
      html`<${Button} size="small" onClick=${() => end(session.id)}>${texts.people.endSession}<//>`,
    ],
  }));
  const heads = [kind, signedIn, lastUsed, address, client, texts.people.endSession];
  return html`
    <${Section} title=${texts.people.sessions} count=${rows.length || Number(error !== null)} empty=${texts.people.noSessions}>
      ${error ? html`<${Notice} kind="error" error=${error} onRetry=${reload} />` : html`<${PlainTable} label=${texts.people.sessions} heads=${heads} rows=${rows} />`}
    <//>
  `;
}

function Factors({ id, kind, round }: RoundProps & { readonly kind: FactorKind }) {
  const { value, error, reload } = useLoaded((signal) => listFactors(id, kind, signal), [id, kind, round]);
  const { name, type, state, created } = texts.people.columns;
  const remove = (factor: string) => attempt(() => removeFactor(id, kind, factor), reload);
  const rows = (value ?? []).map((factor) => ({
    key: factor.id,
    cells: [
      factor.friendly_name || "–",
      factor.factor_type ?? "passkey",
      factor.status ?? "",
      formatTime(factor.created_at),
      html`<${Button} size="small" kind="danger" onClick=${() => remove(factor.id)}>${texts.people.remove}<//>`,
    ],
  }));
  const title = texts.people[kind];
  return html`
    <${Section} title=${title} count=${rows.length || Number(error !== null)} empty=${texts.people.none}>
      ${error ? html`<${Notice} kind="error" error=${error} onRetry=${reload} />` : html`<${PlainTable} label=${title} heads=${[name, type, state, created, texts.people.remove]} rows=${rows} />`}
    <//>
  `;
}

function Identities({ user }: { readonly user: User }) {
  const { provider, subject, created, lastUsed } = texts.people.columns;
  const rows = user.identities.map((each) => ({
    key: each.identity_id,
    cells: [
      each.provider,
      html`<code>${each.id}</code>`,
      formatTime(each.created_at),
      each.last_sign_in_at ? formatTime(each.last_sign_in_at) : texts.people.never,
    ],
  }));
  return html`
    <${Section} title=${texts.people.identities} count=${rows.length} empty=${texts.people.none}>
      <${PlainTable} label=${texts.people.identities} heads=${[provider, subject, created, lastUsed]} rows=${rows} />
    <//>
  `;
}

function Metadata({ user }: { readonly user: User }) {
  const { metadata } = texts.people;
  return html`
    <${Section} title=${metadata.title} count=${1} empty="">
      <p class="quiet">${metadata.user}</p>
      <${CodeBlock} label=${metadata.user} text=${JSON.stringify(user.user_metadata, null, 2)} wrap />
      <p class="quiet">${metadata.app}</p>
      <${CodeBlock} label=${metadata.app} text=${JSON.stringify(user.app_metadata, null, 2)} wrap />
    <//>
  `;
}

async function attempt(work: () => Promise<void>, reload: () => void): Promise<void> {
  try {
    await work();
  } catch (error) {
    showToast({ text: (error as Error).message, kind: "error" });
  }
  reload();
}
