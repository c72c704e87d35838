#!/usr/bin/env python3
# Opens a page, a path or a URL, in headless Chromium and does what the steps on stdin say, over the DevTools protocol.
# Standard library only.
#
#   browser.py PAGE < steps.json
#
# A step is an object with one of
#   eval: an expression (a promise is awaited); its value is the step's result
#   click, hover: an expression for {x, y, width, height}; the middle of that box is clicked
#   drag: an expression for {x, y, to_x, to_y}
#   key: a key's name; type: a text
#   scheme: "dark" or "light"; size: [width, height]; screenshot: a file
# Prints {"results": [...], "errors": [...]}: the errors are uncaught exceptions, and errors on the console.
# Ends with 77 if there is no Chromium here.
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading

DEADLINE_S = 240


class Browser:
    def __init__(self, program, folder):
        to_browser, self.write_end = os.pipe()
        self.read_end, from_browser = os.pipe()

        def in_child():
            # Chromium reads commands from 3 and answers on 4. Copies above both first: the pipes may be 3 and 4 themselves.
            commands, answers = os.dup(to_browser), os.dup(from_browser)
            while commands < 5 or answers < 5:
                commands, answers = os.dup(commands), os.dup(answers)
            os.dup2(commands, 3)
            os.dup2(answers, 4)
            os.set_inheritable(3, True)
            os.set_inheritable(4, True)

        options = ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run',
                   '--disable-background-networking', '--disable-component-update', '--hide-scrollbars',
                   '--remote-debugging-pipe', '--user-data-dir=' + folder, 'about:blank']
        self.log = open(os.path.join(folder, 'log'), 'w+')
        self.process = subprocess.Popen([program] + options, preexec_fn=in_child, close_fds=False, stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=self.log, env=dict(os.environ, HOME=folder))
        os.close(to_browser)
        os.close(from_browser)
        self.timer = threading.Timer(DEADLINE_S, self.process.kill)
        self.timer.start()
        self.input = b''
        self.last_id = 0
        self.session = None
        self.errors = []

    def receive(self):
        while b'\0' not in self.input:
            piece = os.read(self.read_end, 1 << 16)
            if not piece:
                self.log.seek(0)
                sys.stderr.write('Chromium ended:\n' + self.log.read()[-2000:])
                sys.exit(2)
            self.input += piece
        text, self.input = self.input.split(b'\0', 1)
        message = json.loads(text)
        parameters = message.get('params', {})
        if message.get('method') == 'Runtime.exceptionThrown':
            self.errors.append(parameters['exceptionDetails'].get('exception', {}).get('description', str(parameters)))
        elif message.get('method') == 'Log.entryAdded' and parameters['entry']['level'] == 'error':
            self.errors.append(parameters['entry']['text'])
        elif message.get('method') == 'Runtime.consoleAPICalled' and parameters['type'] in ('error', 'assert'):
            self.errors.append(str(parameters['args']))
        return message

    def call(self, method, **parameters):
        self.last_id += 1
        message = {'id': self.last_id, 'method': method, 'params': parameters}
        if self.session:
            message['sessionId'] = self.session
        text = json.dumps(message).encode() + b'\0'
        while text:
            text = text[os.write(self.write_end, text):]
        while True:
            answer = self.receive()
            if answer.get('id') == self.last_id:
                if 'error' in answer:
                    raise RuntimeError(method + ': ' + answer['error']['message'])
                return answer['result']

    def open(self, page):
        target = self.call('Target.createTarget', url='about:blank')['targetId']
        self.session = self.call('Target.attachToTarget', targetId=target, flatten=True)['sessionId']
        for domain in ('Page', 'Runtime', 'Log'):
            self.call(domain + '.enable')
        self.resize(1400, 900)
        self.call('Page.navigate', url=page if '://' in page else 'file://' + os.path.abspath(page))
        while self.receive().get('method') != 'Page.loadEventFired':
            pass

    def resize(self, width, height):
        self.call('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1, mobile=False)

    def evaluate(self, expression):
        result = self.call('Runtime.evaluate', expression=expression, awaitPromise=True, returnByValue=True)
        if 'exceptionDetails' in result:
            raise RuntimeError(expression + ': ' + json.dumps(result['exceptionDetails']))
        return result['result'].get('value')

    def mouse(self, kind, x, y, buttons=0):
        self.call('Input.dispatchMouseEvent', type=kind, x=x, y=y, button='none' if kind == 'mouseMoved' else 'left',
                  buttons=buttons, clickCount=0 if kind == 'mouseMoved' else 1)

    def click(self, x, y):
        self.mouse('mouseMoved', x, y)
        self.mouse('mousePressed', x, y, 1)
        self.mouse('mouseReleased', x, y)

    def key(self, name):
        text = {'text': name} if len(name) == 1 else {}
        self.call('Input.dispatchKeyEvent', type='keyDown', key=name, **text)
        self.call('Input.dispatchKeyEvent', type='keyUp', key=name)

    def drag(self, way):
        self.mouse('mouseMoved', way['x'], way['y'])
        self.mouse('mousePressed', way['x'], way['y'], 1)
        self.mouse('mouseMoved', way['to_x'], way['to_y'], 1)
        self.mouse('mouseReleased', way['to_x'], way['to_y'])

    def screenshot(self, path):
        with open(path, 'wb') as file:
            file.write(base64.b64decode(self.call('Page.captureScreenshot', format='png')['data']))

    def step(self, step):
        (action, what), = step.items()
        if action == 'eval':
            return self.evaluate(what)
        if action in ('click', 'hover'):
            box = self.evaluate('JSON.parse(JSON.stringify(' + what + '))')
            move = self.click if action == 'click' else lambda x, y: self.mouse('mouseMoved', x, y)
            move(box['x'] + box['width'] / 2, box['y'] + box['height'] / 2)
        elif action == 'drag':
            self.drag(self.evaluate(what))
        elif action == 'key':
            self.key(what)
        elif action == 'type':
            self.call('Input.insertText', text=what)
        elif action == 'scheme':
            self.call('Emulation.setEmulatedMedia', features=[{'name': 'prefers-color-scheme', 'value': what}])
        elif action == 'size':
            self.resize(*what)
        elif action == 'screenshot':
            self.screenshot(what)
        else:
            raise RuntimeError('unknown step ' + action)
        return None

    def close(self):
        self.timer.cancel()
        self.process.kill()
        self.process.wait()


def main():
    program = shutil.which('chromium') or shutil.which('chromium-browser') or shutil.which('google-chrome')
    if not program:
        sys.exit(77)
    steps = json.load(sys.stdin)
    folder = tempfile.mkdtemp()
    try:
        browser = Browser(program, folder)
        try:
            browser.open(sys.argv[1])
            results = [browser.step(step) for step in steps]
            print(json.dumps({'results': results, 'errors': browser.errors}))
        finally:
            browser.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


main()
