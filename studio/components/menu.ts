import { useEffect, useId, useRef, useState } from "preact/hooks";
import { type Children, html } from "../html.ts";
import { Icon, type IconName } from "./icon.ts";

export type MenuItem = {
  readonly label: string;
  readonly icon?: IconName;
  /** True for the chosen item of several. */
  readonly isChecked?: boolean;
  readonly isDangerous?: boolean;
  readonly disabled?: boolean;
  /** The address of a link; an item has this or an action. */
  readonly href?: string;
  readonly onSelect?: () => void;
};

type MenuProps = {
  readonly label: string;
  readonly icon?: IconName;
  /** The content of the button beside the icon; without it the button shows only the icon. */
  readonly children?: Children;
  readonly items: readonly MenuItem[];
};

const STEPS: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1 };

/** A button that opens a list of actions: arrows move, Escape closes. */
export function Menu({ label, icon = "more", children, items }: MenuProps) {
  const [isOpen, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  const id = useId();
  const button = () => root.current!.querySelector<HTMLElement>(".menu-button")!;
  const entries = () => [...root.current!.querySelectorAll<HTMLElement>("[role^=menuitem]:not([disabled])")];
  useEffect(() => {
    if (!isOpen) return undefined;
    entries()[0]?.focus();
    const closeOutside = (event: Event) => !root.current?.contains(event.target as Node) && setOpen(false);
    document.addEventListener("pointerdown", closeOutside);
    return () => document.removeEventListener("pointerdown", closeOutside);
  }, [isOpen]);
  const close = () => {
    setOpen(false);
    button().focus();
  };
  const moveFocus = (event: KeyboardEvent) => {
    if (!isOpen) return;
    const step = STEPS[event.key];
    if (event.key === "Escape") close();
    else if (event.key === "Tab") setOpen(false);
    else if (step !== undefined) {
      const list = entries();
      list.at((list.indexOf(document.activeElement as HTMLElement) + step) % list.length)?.focus();
    } else return;
    if (event.key !== "Tab") event.preventDefault();
    event.stopPropagation();
  };
  return html`
    <div class="menu" ref=${root} onKeyDown=${moveFocus}>
      <button
        type="button"
        class=${`menu-button button quiet ${children ? "" : "icon-button"}`}
        aria-haspopup="menu"
        aria-expanded=${isOpen}
        aria-controls=${isOpen ? id : undefined}
        title=${label}
        onClick=${() => setOpen(!isOpen)}
      >
        <${Icon} name=${icon} />
        ${children ?? html`<span class="visually-hidden">${label}</span>`}
      </button>
      ${isOpen && html`<div id=${id} class="menu-list" role="menu" aria-label=${label}>${items.map((item) => menuItem(item, close))}</div>`}
    </div>
  `;
}

function menuItem(
  { label, icon, isChecked, isDangerous = false, disabled, href, onSelect }: MenuItem,
  close: () => void,
) {
  const content = html`
    ${isChecked !== undefined && html`<span class="menu-mark">${isChecked && html`<${Icon} name="check" />`}</span>`}
    ${icon && html`<${Icon} name=${icon} />`}<span>${label}</span>
  `;
  const select = () => {
    close();
    onSelect?.();
  };
  if (href !== undefined)
    return html`<a key=${label} role="menuitem" tabindex="-1" href=${href} onClick=${close}>${content}</a>`;
  return html`
    <button
      key=${label}
      type="button"
      role=${isChecked === undefined ? "menuitem" : "menuitemradio"}
      aria-checked=${isChecked}
      tabindex="-1"
      class=${isDangerous ? "danger" : ""}
      disabled=${disabled}
      onClick=${select}
    >
      ${content}
    </button>
  `;
}
