import { useState } from "preact/hooks";
import { useLoaded } from "../api/use-loaded.ts";
import { ActionDialog } from "../components/action-dialog.ts";
import { CodeBlock } from "../components/code-block.ts";
import { Dialog } from "../components/dialog.ts";
import { Checkbox, TextArea, TextField } from "../components/field.ts";
import { Notice } from "../components/notice.ts";
import { Loading } from "../components/page.ts";
import { Select } from "../components/select.ts";
import { html } from "../html.ts";
import { navigate, pathTo } from "../router.ts";
import { texts } from "../texts.ts";
import { changeUser, deleteUser, endSessions, makeRecoveryLink, USER_ROLES, type User } from "./people-api.ts";
import { labelOf } from "./users-tab.ts";

export type UserAction = keyof typeof texts.people.actions;

/** Returns the actions that apply to the user, besides the deletion. */
export function userActions(user: User): readonly UserAction[] {
  const isBanned = user.banned_until !== undefined && Date.parse(user.banned_until) > Date.now();
  return [
    ...(user.email !== "" && !user.email_confirmed_at ? (["confirm"] as const) : []),
    ...(user.email !== "" ? (["resetLink"] as const) : []),
    "setPassword",
    "changeRole",
    "editMetadata",
    isBanned ? "unban" : "ban",
    "signOut",
  ];
}

type ActionProps = {
  readonly user: User;
  readonly onClose: () => void;
  readonly onDone: () => void;
};

export function UserActionDialog({ action, ...props }: ActionProps & { readonly action: UserAction }) {
  switch (action) {
    case "resetLink":
      return html`<${RecoveryLink} ...${props} />`;
    case "setPassword":
      return html`<${PasswordForm} ...${props} />`;
    case "changeRole":
      return html`<${RoleForm} ...${props} />`;
    case "editMetadata":
      return html`<${MetadataForm} ...${props} />`;
    case "ban":
      return html`<${BanForm} ...${props} />`;
    case "delete":
      return html`<${DeleteForm} ...${props} />`;
    default:
      return html`<${Question} ...${props} action=${action} />`;
  }
}

const SIMPLE_ACTIONS = {
  confirm: ({ id }: User) => changeUser(id, { email_confirm: true }),
  unban: ({ id }: User) => changeUser(id, { ban_duration: "none" }),
  signOut: ({ id }: User) => endSessions(id),
};

function Question({ user, action, onClose, onDone }: ActionProps & { readonly action: keyof typeof SIMPLE_ACTIONS }) {
  const act = async () => {
    await SIMPLE_ACTIONS[action](user);
    onDone();
  };
  const label = texts.people.actions[action];
  return html`
    <${ActionDialog} title=${label} action=${label} onAct=${act} onClose=${onClose}>
      <p>${texts.people.questions[action](labelOf(user))}</p>
    <//>
  `;
}

/** Makes the link when the dialog opens, and shows it once. */
function RecoveryLink({ user, onClose }: ActionProps) {
  const { value, error } = useLoaded(() => makeRecoveryLink(user.email), [user.email]);
  return html`
    <${Dialog} title=${texts.people.actions.resetLink} onClose=${onClose}>
      <p>${texts.people.resetLinkHint(user.email)}</p>
      ${error && html`<${Notice} kind="error" error=${error} />`}
      ${!value && !error && html`<${Loading} />`}
      ${value && html`<${CodeBlock} label=${texts.people.actions.resetLink} text=${value} wrap />`}
    <//>
  `;
}

/** A form that sends changes of the user. */
function ChangeForm(props: ActionProps & { action: UserAction; changes: () => object; children?: unknown }) {
  const { user, action, changes, onClose, onDone, children } = props;
  const act = async () => {
    await changeUser(user.id, changes() as Record<string, unknown>);
    onDone();
  };
  const label = texts.people.actions[action];
  return html`
    <${ActionDialog} title=${`${label}: ${labelOf(user)}`} action=${label} isDangerous=${action === "ban"} onAct=${act} onClose=${onClose}>
      ${children}
    <//>
  `;
}

function PasswordForm(props: ActionProps) {
  const [password, setPassword] = useState("");
  return html`
    <${ChangeForm} ...${props} action="setPassword" changes=${() => ({ password })}>
      <${TextField} type="password" required label=${texts.people.password} hint=${texts.people.setPasswordHint} value=${password} onInput=${setPassword} autocomplete="new-password" />
    <//>
  `;
}

function RoleForm(props: ActionProps) {
  const [role, setRole] = useState(props.user.role);
  return html`
    <${ChangeForm} ...${props} action="changeRole" changes=${() => ({ role })}>
      <${Select} label=${texts.people.columns.role} hint=${texts.people.roleHint} value=${role} options=${USER_ROLES} onChange=${setRole} />
    <//>
  `;
}

function BanForm(props: ActionProps) {
  const durations = Object.entries(texts.people.banDurations).map(([value, label]) => ({ value, label }));
  const [duration, setDuration] = useState(durations[0]!.value);
  return html`
    <${ChangeForm} ...${props} action="ban" changes=${() => ({ ban_duration: duration })}>
      <p>${texts.people.banHint}</p>
      <${Select} label=${texts.people.columns.duration} value=${duration} options=${durations} onChange=${setDuration} />
    <//>
  `;
}

function MetadataForm(props: ActionProps) {
  const { user_metadata: ofUser, app_metadata: ofApp } = props.user;
  // The service adds these two itself.
  const { provider: _provider, providers: _providers, ...app } = ofApp;
  const [userText, setUserText] = useState(JSON.stringify(ofUser, null, 2));
  const [appText, setAppText] = useState(JSON.stringify(app, null, 2));
  const [faults, known] = [[faultOf(userText), faultOf(appText)], { ofUser, app }];
  const changes = () => {
    const fault = faults.find((each) => each !== null);
    if (fault) throw new Error(fault);
    return {
      user_metadata: withRemovals(known.ofUser, JSON.parse(userText)),
      app_metadata: withRemovals(known.app, JSON.parse(appText)),
    };
  };
  const { metadata } = texts.people;
  return html`
    <${ChangeForm} ...${props} action="editMetadata" changes=${changes}>
      <${TextArea} rows=${8} label=${metadata.user} error=${faults[0]} value=${userText} onInput=${setUserText} />
      <${TextArea} rows=${6} label=${metadata.app} error=${faults[1]} value=${appText} onInput=${setAppText} />
    <//>
  `;
}

function faultOf(text: string): string | null {
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? null : texts.people.metadata.notAnObject;
  } catch (error) {
    return (error as Error).message;
  }
}

/** Sends deleted members as null, because the service merges members. */
function withRemovals(before: object, after: object): object {
  const removed = Object.keys(before).filter((name) => !Object.hasOwn(after, name));
  return { ...after, ...Object.fromEntries(removed.map((name) => [name, null])) };
}

function DeleteForm({ user, onClose }: ActionProps) {
  const [keepsRow, setKeepsRow] = useState(false);
  const act = async () => {
    await deleteUser(user.id, keepsRow);
    navigate(pathTo("people", "users"));
  };
  const label = texts.people.actions.delete;
  return html`
    <${ActionDialog} title=${`${label}: ${labelOf(user)}`} action=${label} isDangerous onAct=${act} onClose=${onClose}>
      <p>${texts.people.deleteHint}</p>
      <${Checkbox} label=${texts.people.keepRow} checked=${keepsRow} onChange=${setKeepsRow} />
    <//>
  `;
}
