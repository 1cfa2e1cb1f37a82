"""draw_report.py FILE.png: a picture of a page of shardc-compile --report=html.

The page is that of FSDP and tensor parallelism of a perceptron on 4x2 devices;
its sections are scaled down and set in two columns. scripts/draw-report.sh runs it.
"""

import subprocess
import sys
import tempfile

from webdriver import Browser

# Of the page: the shardings with a device picked beside the memory, above the
# collectives and the step over time.
ARRANGE = """
for (const selector of ['header p', 'nav', '.pickers', '.scroll', 'details', '#held',
                        '#overview', 'section > p', 'h3', '.note', '#time .legend'])
  for (const element of document.querySelectorAll(selector)) element.remove();
document.querySelectorAll('section').forEach(it => {
  if (!['shardings', 'memory', 'communication', 'time'].includes(it.id)) it.remove();
});
for (const figure of document.querySelectorAll('#roofline')) figure.parentNode.remove();
const sheet = new CSSStyleSheet();
sheet.replaceSync(`header h1 { margin: 10px 0 0; font-size: 20px; }
  main { display: grid; grid-template-columns: 330px 1fr; gap: 0 18px; max-width: none; }
  section { border: 0; padding: 0; } h2 { margin: 6px 0; }
  figure { margin: 4px 0; }
  #communication, #time { grid-column: 1 / 3; }
  header, main { max-width: 1060px; }`);
document.adoptedStyleSheets = [sheet];
document.body.id = 'page';
"""

PICK = """
const [tensor, device] = ['tensor', 'device'].map(
    it => document.getElementById(it + '-picker'));
tensor.value = [...tensor.options].findIndex(it => it.text === 'w1');
device.value = 5;
device.dispatchEvent(new Event('change'));
"""


def main():
    with tempfile.TemporaryDirectory() as folder, Browser() as browser:
        model, page = f"{folder}/mlp.mlir", f"{folder}/mlp.html"
        subprocess.run(["shardc-gen", "--layers=784,1024,1024,10", "--strategy=fsdp+tp",
                        "--loss=softmax_cross_entropy", "--optimizer=adam",
                        "--batch-size=1024", "--mesh=data=4,model=2", "-o", model],
                       check=True)
        subprocess.run(["shardc-compile", model, "--machine=a100-40", "--report=html",
                        "-o", page], check=True, stderr=subprocess.DEVNULL)
        browser.open(page)
        browser.run(PICK)
        browser.run(ARRANGE)
        height = browser.run("return document.documentElement.scrollHeight")
        browser.send_to_page("Emulation.setDeviceMetricsOverride", width=1100,
                             height=min(height, 1000), deviceScaleFactor=1, mobile=False)
        with open(sys.argv[1], "wb") as file:
            file.write(browser.screenshot())


if __name__ == "__main__":
    main()
