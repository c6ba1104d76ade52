import type { SignInSetting } from "#operations/admin-types";
import { useLoaded } from "../api/use-loaded.ts";
import { Notice } from "../components/notice.ts";
import { Loading } from "../components/page.ts";
import { PlainTable } from "../components/plain-table.ts";
import { html } from "../html.ts";
import { texts } from "../texts.ts";
import { listSignInSettings } from "./people-api.ts";

const words = texts.people.settings;

/** The settings of accounts, sign-in and e-mails, and how to set them. */
export function SettingsTab() {
  const { value, error, isLoading, reload } = useLoaded((signal) => listSignInSettings(signal), []);
  const { setting, inEffect, meaning } = texts.people.columns;
  const rows = (value ?? []).map((each) => ({
    key: each.name,
    cells: [html`<code>${each.name}</code>`, html`<${SettingValue} setting=${each} />`, plainText(each.description)],
  }));
  return html`
    <p>${words.intro} <a href="/docs/settings" target="_blank" rel="noreferrer">${words.documentation}</a></p>
    ${error && html`<${Notice} kind="error" error=${error} onRetry=${reload} />`}
    ${!value && isLoading && html`<${Loading} />`}
    ${rows.length > 0 && html`<${PlainTable} label=${texts.people.tabs.settings} heads=${[setting, inEffect, meaning]} rows=${rows} hasRowHeads />`}
  `;
}

function SettingValue({ setting }: { readonly setting: SignInSetting }) {
  const { value, is_secret: isSecret, is_set: isSet, is_default: isDefault, database_name: name } = setting;
  if (isSecret && isSet) return html`<span class="quiet">${words.secret}</span>`;
  if (!isSet || value === "") return html`<span class="quiet">${words.notSet}</span>`;
  return html`
    <code>${value}</code> ${isDefault && html`<span class="quiet">${words.isDefault}</span>`}
    ${name && html`<p class="field-hint">${words.orInDatabase} <code>${words.inDatabase(name, value ?? "")}</code></p>`}
  `;
}

/** Removes the markup of Markdown. */
function plainText(description: string): string {
  return description.replace(/\[([^\][]{1,200})\]\([^()\s]{1,300}\)/g, "$1").replaceAll("`", "");
}
