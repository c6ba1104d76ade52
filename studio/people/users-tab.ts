import { useState } from "preact/hooks";
import { useLoaded } from "../api/use-loaded.ts";
import { ActionDialog } from "../components/action-dialog.ts";
import { Button } from "../components/button.ts";
import { Checkbox, TextField } from "../components/field.ts";
import { Notice } from "../components/notice.ts";
import { Empty, Loading } from "../components/page.ts";
import { PlainTable } from "../components/plain-table.ts";
import { Select } from "../components/select.ts";
import { showToast } from "../components/toast.ts";
import { html } from "../html.ts";
import { navigate, pathTo, useSearchParameter } from "../router.ts";
import { formatTime } from "../texts/format.ts";
import { texts } from "../texts.ts";
import { createUser, inviteUser, listUsers, PAGE_SIZE, readUserKeys, USER_ROLES, type User } from "./people-api.ts";

export function UsersTab() {
  const [filter, setFilter] = useSearchParameter("q");
  const [pageText, setPage] = useSearchParameter("page");
  const [dialog, setDialog] = useState<"create" | "invite" | null>(null);
  const page = Math.max(1, Number(pageText) || 1);
  const { value, error, isLoading, reload } = useLoaded(
    async (signal) => {
      const found = await listUsers(page, filter ?? "", signal);
      const ids = found.users.map(({ id }) => id);
      return { ...found, keys: await readUserKeys(ids, signal) };
    },
    [page, filter],
  );
  const search = (text: string) => {
    setPage(null, { replace: true });
    setFilter(text || null, { replace: true });
  };
  return html`
    <div class="row">
      <${TextField} type="search" hideLabel label=${texts.people.search} placeholder=${texts.people.search} value=${filter ?? ""} onInput=${search} />
      <div class="page-actions">
        <${Button} icon="link" onClick=${() => setDialog("invite")}>${texts.people.invite}<//>
        <${Button} icon="plus" kind="primary" onClick=${() => setDialog("create")}>${texts.people.createUser}<//>
      </div>
    </div>
    ${error && html`<${Notice} kind="error" error=${error} onRetry=${reload} />`}
    ${!value && isLoading && html`<${Loading} />`}
    ${value && html`<${UserTable} users=${value.users} keys=${value.keys} isFiltered=${filter !== null} />`}
    ${value && html`<${Pager} page=${page} total=${value.total} onChange=${(next: number) => setPage(String(next))} />`}
    ${dialog === "create" && html`<${CreateDialog} onClose=${() => setDialog(null)} />`}
    ${dialog === "invite" && html`<${InviteDialog} onClose=${() => setDialog(null)} />`}
  `;
}

type UserTableProps = { readonly users: readonly User[]; readonly keys: UserKeys; readonly isFiltered: boolean };
/** The keys by which rows refer to users, by user id. */
type UserKeys = Readonly<Record<string, string>>;

function UserTable({ users, keys, isFiltered }: UserTableProps) {
  if (users.length === 0) return html`<${Empty}>${isFiltered ? texts.people.noUsers : texts.people.noUsersYet}<//>`;
  const { id, user, name, role, created, lastSignIn, state } = texts.people.columns;
  const rows = users.map((each) => ({
    key: each.id,
    cells: [
      html`<a href=${pathTo("people", "users", each.id)}>${labelOf(each)}</a>`,
      html`<code>${keys[each.id] ?? ""}</code>`,
      String(each.user_metadata.full_name ?? each.user_metadata.name ?? ""),
      each.role,
      formatTime(each.created_at),
      each.last_sign_in_at ? formatTime(each.last_sign_in_at) : texts.people.never,
      html`<${UserBadges} user=${each} />`,
    ],
  }));
  const heads = [user, id, name, role, created, lastSignIn, state];
  return html`<${PlainTable} label=${texts.people.tabs.users} heads=${heads} rows=${rows} />`;
}

export function labelOf({ id, email, phone }: User): string {
  return email || phone || id;
}

export function UserBadges({ user }: { readonly user: User }) {
  const { banned, deleted, anonymous, unconfirmed, invited } = texts.people.states;
  const isBanned = user.banned_until !== undefined && Date.parse(user.banned_until) > Date.now();
  return html`
    <span class="row">
      ${isBanned && html`<span class="badge danger">${banned(formatTime(user.banned_until!))}</span>`}
      ${user.deleted_at && html`<span class="badge danger">${deleted}</span>`}
      ${user.is_anonymous && html`<span class="badge">${anonymous}</span>`}
      ${!user.confirmed_at && !user.is_anonymous && html`<span class="badge warning">${user.invited_at ? invited : unconfirmed}</span>`}
    </span>
  `;
}

type PagerProps = { readonly page: number; readonly total: number; readonly onChange: (page: number) => void };

function Pager({ page, total, onChange }: PagerProps) {
  const last = Math.max(1, Math.ceil(total / PAGE_SIZE));
  return html`
    <div class="row">
      <${Button} size="small" disabled=${page <= 1} onClick=${() => onChange(page - 1)}>${texts.people.previous}<//>
      <span class="quiet">${texts.people.pageOf(page, last, total)}</span>
      <${Button} size="small" disabled=${page >= last} onClick=${() => onChange(page + 1)}>${texts.people.next}<//>
    </div>
  `;
}

type UserDialogProps = { readonly onClose: () => void };

function CreateDialog({ onClose }: UserDialogProps) {
  const [email, setEmail] = useState("");
  const [password, setPassword] = useState("");
  const [isConfirmed, setConfirmed] = useState(true);
  const create = async () => {
    const user = await createUser({ email, ...(password && { password }), email_confirm: isConfirmed });
    navigate(pathTo("people", "users", user.id));
  };
  return html`
    <${ActionDialog} title=${texts.people.createUser} action=${texts.people.create} onAct=${create} onClose=${onClose}>
      <${TextField} type="email" required label=${texts.people.email} value=${email} onInput=${setEmail} autocomplete="off" />
      <${TextField} type="password" label=${texts.people.password} hint=${texts.people.passwordHint} value=${password} onInput=${setPassword} autocomplete="new-password" />
      <${Checkbox} label=${texts.people.confirmed} checked=${isConfirmed} onChange=${setConfirmed} />
    <//>
  `;
}

function InviteDialog({ onClose }: UserDialogProps) {
  const [email, setEmail] = useState("");
  const [role, setRole] = useState(USER_ROLES[0]!);
  const invite = async () => {
    const id = await inviteUser(email, role);
    showToast({ text: texts.people.invitedToast(email) });
    navigate(pathTo("people", "users", id));
  };
  return html`
    <${ActionDialog} title=${texts.people.invite} action=${texts.people.sendInvitation} onAct=${invite} onClose=${onClose}>
      <p>${texts.people.inviteHint}</p>
      <${TextField} type="email" required label=${texts.people.email} value=${email} onInput=${setEmail} autocomplete="off" />
      <${Select} label=${texts.people.columns.role} hint=${texts.people.inviteRoleHint} value=${role} options=${USER_ROLES} onChange=${setRole} />
    <//>
  `;
}
