import { useId } from "preact/hooks";
import { type Children, html } from "../html.ts";

export type Tab = { readonly name: string; readonly title: string };

type TabsProps = {
  readonly label: string;
  readonly tabs: readonly Tab[];
  readonly current: string;
  readonly onChange: (name: string) => void;
  /** The content of the current tab. */
  readonly children?: Children;
};

const STEPS: Readonly<Record<string, number>> = { ArrowRight: 1, ArrowLeft: -1 };

/** A list of tabs: Left and Right choose one; only the content of the current tab is rendered. */
export function Tabs({ label, tabs, current, onChange, children }: TabsProps) {
  const id = useId();
  const move = (event: KeyboardEvent) => {
    const step = STEPS[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const next = tabs.at((tabs.findIndex(({ name }) => name === current) + step) % tabs.length)!;
    onChange(next.name);
    (event.currentTarget as HTMLElement).querySelector<HTMLElement>(`[data-name="${CSS.escape(next.name)}"]`)?.focus();
  };
  return html`
    <div class="tabs">
      <div class="tab-list" role="tablist" aria-label=${label} onKeyDown=${move}>
        ${tabs.map(
          ({ name, title }) => html`
            <button
              key=${name}
              type="button"
              role="tab"
              id=${`${id}-${name}`}
              data-name=${name}
              aria-selected=${name === current}
              aria-controls=${name === current ? `${id}-panel` : undefined}
              tabindex=${name === current ? 0 : -1}
              onClick=${() => onChange(name)}
            >
              ${title}
            </button>
          `,
        )}
      </div>
      <div class="tab-panel" role="tabpanel" id=${`${id}-panel`} aria-labelledby=${`${id}-${current}`}>${children}</div>
    </div>
  `;
}
