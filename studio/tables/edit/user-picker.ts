import { useState } from "preact/hooks";
import { Dialog } from "../../components/dialog.ts";
import { Notice } from "../../components/notice.ts";
import { type FoundUser, UserSearch, userName } from "../../components/user-search.ts";
import { html } from "../../html.ts";
import { readUserKeys } from "../../people/people-api.ts";
import { texts } from "../../texts.ts";

export type UserPickerProps = {
  readonly column: string;
  /** True if the column has the uuid of users, false if it has the key of their accounts. */
  readonly byUuid: boolean;
  readonly onPick: (value: string, name: string) => void;
  readonly onClose: () => void;
};

/** Finds a user by name or address, and gives the value by which the column refers to that user. */
export function UserPicker({ column, byUuid, onPick, onClose }: UserPickerProps) {
  const [error, setError] = useState<Error | null>(null);
  const choose = async (user: FoundUser) => {
    const { id } = user;
    try {
      const value = byUuid ? id : (await readUserKeys([id], new AbortController().signal))[id];
      if (value === undefined) throw new Error(texts.editing.userGone);
      onPick(value, userName(user));
    } catch (refused) {
      setError(refused as Error);
    }
  };
  return html`
    <${Dialog} title=${texts.editing.pickUser(column)} onClose=${onClose}>
      ${error && html`<${Notice} kind="error" error=${error} />`}
      <${UserSearch} onChoose=${choose} />
    <//>
  `;
}
