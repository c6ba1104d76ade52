import { type Children, html } from "../html.ts";
import { Icon, type IconName } from "./icon.ts";

type ButtonProps = {
  readonly kind?: "plain" | "primary" | "danger" | "quiet";
  readonly size?: "normal" | "small";
  readonly icon?: IconName;
  readonly type?: "button" | "submit";
  /** True while the action runs: the button cannot be pressed again. */
  readonly busy?: boolean;
  readonly disabled?: boolean;
  readonly pressed?: boolean;
  readonly expanded?: boolean;
  readonly title?: string;
  readonly class?: string;
  readonly onClick?: (event: MouseEvent) => void;
  readonly children?: Children;
};

export function Button(props: ButtonProps) {
  const { kind = "plain", size = "normal", icon, type = "button", busy = false, disabled = false, children } = props;
  return html`
    <button
      type=${type}
      class=${["button", kind, size, props.class ?? ""].join(" ").trim()}
      disabled=${disabled || busy}
      aria-busy=${busy}
      aria-pressed=${props.pressed}
      aria-expanded=${props.expanded}
      title=${props.title}
      onClick=${props.onClick}
    >
      ${icon && html`<${Icon} name=${icon} />`}${children}
    </button>
  `;
}

type IconButtonProps = Omit<ButtonProps, "children" | "icon"> & {
  readonly icon: IconName;
  readonly label: string;
};

/** A button that shows only an icon; the label is its name. */
export function IconButton({ icon, label, kind = "quiet", ...props }: IconButtonProps) {
  return html`
    <${Button} ...${props} kind=${kind} class=${`icon-button ${props.class ?? ""}`} title=${label} icon=${icon}>
      <span class="visually-hidden">${label}</span>
    <//>
  `;
}
