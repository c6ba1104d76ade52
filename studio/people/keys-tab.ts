import { useState } from "preact/hooks";
import { sessionState } from "../api/session.ts";
import { useLoaded } from "../api/use-loaded.ts";
import { ActionDialog } from "../components/action-dialog.ts";
import { Button } from "../components/button.ts";
import { CodeBlock } from "../components/code-block.ts";
import { Dialog } from "../components/dialog.ts";
import { TextField } from "../components/field.ts";
import { Notice } from "../components/notice.ts";
import { Empty, Loading } from "../components/page.ts";
import { PlainTable } from "../components/plain-table.ts";
import { Select } from "../components/select.ts";
import { html } from "../html.ts";
import { useStore } from "../store.ts";
import { formatTime } from "../texts/format.ts";
import { texts } from "../texts.ts";
import { type ApiKey, listKeys, makeKey, revokeKey } from "./people-api.ts";

const ROLES = ["service_role", "admin", "authenticated", "anon"];

export function KeysTab() {
  const { value, error, isLoading, reload } = useLoaded((signal) => listKeys(signal), []);
  const [isMaking, setMaking] = useState(false);
  const [made, setMade] = useState<string | null>(null);
  const [revoked, setRevoked] = useState<ApiKey | null>(null);
  const session = useStore(sessionState);
  const isNamed = session.status === "signed-in" && session.session.user !== null;
  const { keys } = texts.people;
  const revoke = async () => {
    await revokeKey(revoked!.id);
    reload();
  };
  return html`
    <div class="row">
      <p class="quiet">${keys.intro}</p>
      <div class="page-actions"><${Button} icon="plus" kind="primary" onClick=${() => setMaking(true)}>${keys.make}<//></div>
    </div>
    ${!isNamed && html`<${Notice}>${keys.nobody}<//>`}
    ${error && html`<${Notice} kind="error" error=${error} onRetry=${reload} />`}
    ${!value && isLoading && html`<${Loading} />`}
    ${value && html`<${KeyTable} keys=${value} onRevoke=${setRevoked} />`}
    ${
      isMaking &&
      html`<${MakeDialog} onClose=${() => setMaking(false)} onMade=${(key: string) => {
        setMade(key);
        reload();
      }} />`
    }
    ${
      made !== null &&
      html`
        <${Dialog} title=${keys.made} onClose=${() => setMade(null)}>
          <p>${keys.shownOnce}</p>
          <${CodeBlock} label=${keys.made} text=${made} wrap />
        <//>
      `
    }
    ${
      revoked &&
      html`
        <${ActionDialog} title=${keys.revokeTitle(revoked.begins)} action=${keys.revoke} isDangerous onAct=${revoke} onClose=${() => setRevoked(null)}>
          <p>${keys.revokeHint}</p>
        <//>
      `
    }
  `;
}

type KeyTableProps = { readonly keys: readonly ApiKey[]; readonly onRevoke: (key: ApiKey) => void };

function KeyTable({ keys, onRevoke }: KeyTableProps) {
  if (keys.length === 0) return html`<${Empty}>${texts.people.keys.noKeys}<//>`;
  const { key, name, role, user, created, expires, lastUsed } = texts.people.columns;
  const rows = keys.map((each) => ({
    key: String(each.id),
    cells: [
      html`<code>${each.begins}…</code>`,
      each.name,
      each.role,
      each.owner ?? "",
      formatTime(each.createdAt),
      each.expires ? formatTime(each.expires) : texts.people.never,
      each.lastUsedAt ? formatTime(each.lastUsedAt) : texts.people.never,
      each.revokedAt
        ? html`<span class="badge danger">${texts.people.keys.revoked}</span>`
        : html`<${Button} size="small" kind="danger" onClick=${() => onRevoke(each)}>${texts.people.keys.revoke}<//>`,
    ],
  }));
  const heads = [key, name, role, user, created, expires, lastUsed, texts.people.keys.revoke];
  return html`<${PlainTable} label=${texts.people.tabs.keys} heads=${heads} rows=${rows} />`;
}

type MakeDialogProps = { readonly onClose: () => void; readonly onMade: (key: string) => void };

function MakeDialog({ onClose, onMade }: MakeDialogProps) {
  const [role, setRole] = useState(ROLES[0]!);
  const [name, setName] = useState("");
  const [owner, setOwner] = useState("");
  const [day, setDay] = useState("");
  const { keys, columns } = texts.people;
  const make = async () => {
    const expires = day === "" ? null : new Date(`${day}T00:00:00`).toISOString();
    onMade(await makeKey({ role, name, owner: owner === "" ? null : Number(owner), expires }));
  };
  return html`
    <${ActionDialog} title=${keys.make} action=${keys.make} onAct=${make} onClose=${onClose}>
      <${Select} label=${columns.role} hint=${keys.roleHint} value=${role} options=${ROLES} onChange=${setRole} />
      <${TextField} label=${columns.name} value=${name} onInput=${setName} />
      <${TextField} type="number" label=${keys.owner} hint=${keys.ownerHint} value=${owner} onInput=${setOwner} />
      <${TextField} type="date" label=${columns.expires} value=${day} onInput=${setDay} />
    <//>
  `;
}
