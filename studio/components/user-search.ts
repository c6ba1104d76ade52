import { useState } from "preact/hooks";
import { requestJson } from "../api/client.ts";
import { useLoaded } from "../api/use-loaded.ts";
import { html } from "../html.ts";
import { texts } from "../texts.ts";
import { TextField } from "./field.ts";
import { Notice } from "./notice.ts";
import { useDelayed } from "./use-delayed.ts";

export type FoundUser = { readonly id: string; readonly email?: string; readonly phone?: string };

const MAX_FOUND = 8;

/** Finds users by a part of their e-mail address. */
export function UserSearch({ onChoose }: { readonly onChoose: (user: FoundUser) => void }) {
  const [text, setText] = useState("");
  const filter = useDelayed(text).trim();
  const { value, error } = useLoaded((signal) => findUsers(filter, signal), [filter]);
  return html`
    <div class="stack">
      <${TextField} label=${texts.viewAs.searchUsers} type="search" autocomplete="off" value=${text} onInput=${setText} />
      ${error && html`<${Notice} kind="error" error=${error} />`}
      ${value?.length === 0 && html`<p class="quiet">${texts.viewAs.noUser}</p>`}
      <ul class="user-choices" aria-label=${texts.viewAs.users}>
        ${value?.map(
          (user) => html`
            <li key=${user.id}>
              <button type="button" class="button quiet" onClick=${() => onChoose(user)}>${userName(user)}</button>
            </li>
          `,
        )}
      </ul>
    </div>
  `;
}

export function userName({ id, email, phone }: FoundUser): string {
  return email || phone || id;
}

/** Returns the name of the user with this id. */
export async function readUserName(id: string, signal: AbortSignal): Promise<string> {
  return userName(await requestJson<FoundUser>(`/auth/v1/admin/users/${encodeURIComponent(id)}`, { signal }));
}

async function findUsers(filter: string, signal: AbortSignal): Promise<readonly FoundUser[]> {
  const query = new URLSearchParams({ filter, per_page: String(MAX_FOUND) });
  return (await requestJson<{ users: readonly FoundUser[] }>(`/auth/v1/admin/users?${query}`, { signal })).users;
}
